-- stopped names refused crawls of which the owner has documents: cursor. It answers the cursor to go on with, and names.
local page = call('SSCAN', base .. ':o:' .. owner, arg(), 'COUNT', 1000)
local out, known = {}, {}
for _, ref in ipairs(page[2]) do
  local id, hash = string.match(ref, '^(%d+):(.*)$')
  local q = id and queue(id)
  local doc = q and document(q, hash)
  if doc and refused(doc) then
    local name = crawlName(crawlOf(doc[CRAWL]))
    if not known[name] then out[#out + 1] = name end
    known[name] = true
  end
end
return done({ page[1], out })
