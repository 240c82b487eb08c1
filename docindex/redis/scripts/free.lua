-- free deletes documents of a dropped queue: queue, cursor. It returns the next cursor, and the given DOC_IDs with the
-- places of their documents.
local q, cursor = queue(arg()), arg()
if not q or not q.gone then return done({ '0', {} }) end
local page = call('HSCAN', bodies(q), cursor, 'COUNT', 1000)
local list, ids = page[2], {}
for i = 1, #list, 2 do
  local doc = read(q, list[i + 1])
  if doc and doc[STATE] == TRANSIT then
    local ref = q.id .. ':' .. list[i]
    forgotten.lease(q, list[i], doc)
    unhold(doc[OWNER], ref)
    forgotten.keepHost(q, doc)
    if doc[OWNER] ~= '' then forgotten.tell(q, list[i], doc, doc[OWNER]) end
    leaveHost(q, list[i], doc[URL], doc[DOOR], doc[OWNER], doc[CLAIMED])
  end
  if doc then owners.ids(q, list[i], doc, ids) end
  if doc then forget(q, list[i], doc) end
end
if page[1] == '0' then
  call('UNLINK', bodies(q), order(q), owners.kin(q), base .. ':e:' .. q.id, base .. ':q:' .. q.id)
  call('SREM', base .. ':gone', q.id)
end
return done({ page[1], ids })
