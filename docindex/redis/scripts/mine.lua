-- mine returns documents of refused crawls that the owner's slots have: cursor, kind of the refusal ('': as this shard
-- has it; other crawls are skipped), names of crawls. It returns the next cursor, the kind of each crawl, and the index
-- of the name, queue, hash, DOC_ID and URL of each document.
local cursor, kind, whys, wanted = arg(), num(), {}, {}
while at < #ARGV do
  local name = arg()
  local no, why = numberOf(name), kind or whyOf(name)
  whys[#whys + 1] = why or ''
  if no and why and call('HEXISTS', crawlKey(no) .. ':o', owner) == 1 then wanted[no] = #whys end
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
