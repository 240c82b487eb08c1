-- list returns documents of a queue: queue, cursor. It returns the next cursor and the documents.
local q, cursor = named(arg()), arg()
if not q or q.gone then return done({ '0', {} }) end
local page = call('HSCAN', bodies(q), cursor, 'COUNT', 1000)
local out, list = {}, page[2]
for i = 1, #list, 2 do
  local doc = unpacked(q, list[i + 1])
  if doc then out[#out + 1] = describe(q, list[i], doc) end
end
return done({ page[1], out })
