-- purge deletes documents of a queue that were first seen before a time: queue, cursor, time. It returns the next
-- cursor, how many it deleted, queue, hash, DOC_ID and URL of those that the owner has, and the given DOC_IDs with the
-- places of their documents.
local q, cursor, before = named(arg()), arg(), num()
if not q or q.gone then return done({ '0', 0, {}, {} }) end
local page = call('HSCAN', bodies(q), cursor, 'COUNT', 1000)
local list, n, out, ids = page[2], 0, {}, {}
for i = 1, #list, 2 do
  local hash = list[i]
  local doc = document(q, hash)
  if doc and doc[CREATED] < before then
    local who = doc[STATE] == TRANSIT and doc[OWNER] or ''
    forgotten.lease(q, hash, doc)
    complete(q, hash, doc)
    forgotten.keepHost(q, doc)
    if who == owner then
      local m = #out
      out[m + 1], out[m + 2], out[m + 3], out[m + 4] = q.id, hash, doc[ID], doc[URL]
    elseif who ~= '' then
      forgotten.tell(q, hash, doc, who)
    end
    count(q, COMPLETED, -1)
    owners.ids(q, hash, doc, ids)
    forget(q, hash, doc)
    n = n + 1
  end
end
if n > 0 then refresh(q) end
return done({ page[1], n, out, ids })
