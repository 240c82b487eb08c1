-- held returns documents that the owner has: queue ('': any), cursor. It returns the next cursor, and queue, hash,
-- DOC_ID and URL of each.
local only, cursor = arg(), arg()
if only ~= '' then
  local q = named(only)
  if not q or q.o[SLOTS] == 0 then return done({ '0', {} }) end
  only = q.id
end
local page = call('SSCAN', base .. ':o:' .. owner, cursor, 'COUNT', 1000)
local out = {}
for _, ref in ipairs(page[2]) do
  local id, hash = string.match(ref, '^(%d+):(.*)$')
  local q = id and (only == '' or only == id) and queue(id)
  local doc = q and document(q, hash)
  if doc then
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = id, hash, doc[ID], doc[URL]
  end
end
return done({ page[1], out })
