-- mine tells of documents of crawls that the owner's slots have: cursor, the crawls' names. It answers the cursor to go on with, the kind that
-- each crawl was refused with ('': it is not), and which of the names, queue, hash, DOC_ID, URL of each document.
local cursor, whys, wanted = arg(), {}, {}
while at < #ARGV do
  local name = arg()
  local no = numberOf(name)
  whys[#whys + 1] = whyOf(name) or ''
  if no and call('HEXISTS', crawlKey(no) .. ':o', owner) == 1 then wanted[no] = #whys end
end
if not next(wanted) then return done({ '0', whys, {} }) end
local page = call('SSCAN', base .. ':o:' .. owner, cursor, 'COUNT', 1000)
local out = {}
for _, ref in ipairs(page[2]) do
  local id, hash = string.match(ref, '^(%d+):(.*)$')
  local q = id and queue(id)
  local doc = q and document(q, hash)
  local which = doc and wanted[doc[CRAWL]]
  if which then
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = which, id, hash, doc[ID], doc[URL]
  end
end
return done({ page[1], whys, out })
