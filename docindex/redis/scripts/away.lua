-- away looks which documents in slots belong to some crawls: the start of the crawls' names, whether that is the
-- whole name, then queue, hash and URL ('': any) of each document. It returns crawl, domain and priority of each
-- that does.
local prefix, whole = arg(), arg() == '1'
local out = {}
while at < #ARGV do
  local q, hash, url = named(arg()), arg(), arg()
  local doc = q and not q.gone and document(q, hash)
  if doc and doc[CRAWL] and placeOf(doc) == ATSLOTS and (url == '' or url == doc[URL]) then
    local name, n = crawlName(crawlOf(doc[CRAWL])), #out
    if name == prefix or not whole and string.sub(name, 1, #prefix) == prefix then
      out[n + 1], out[n + 2], out[n + 3] = name, domainOf(q, doc), doc[PRIORITY]
    end
  end
end
return done(out)
