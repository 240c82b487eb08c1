-- pick hands out documents of a queue with several hosts: number of this take, lease in ms ('': the owner's), place,
-- consumer, queue, token of the call that serves it, and the documents' hashes. It returns of the documents that were
-- there the same values as take.
local number, lease = num(), num()
local till = lease and now + lease
place0 = num()
local door, q, token = num(), queue(arg()), arg()
local out, taken, pages = {}, {}, q and branches.pages(q)

local function may()
  if not broken.holdable(till) then return false end
  if q.y ~= '' and q.y == token and q.u > now then return true end
  return when(q, door) <= now
end

while q and not q.gone and at < #ARGV and may() do
  local hash = arg()
  local doc = document(q, hash)
  if doc and doc[STATE] == SCHEDULED and dueMS(doc[DUE]) <= now and not refused(doc) then
    dispatch(q, hash, doc, door, till)
    pages.add(doc)
    taken[#taken + 1] = q.id .. ':' .. hash
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = hash, doc[ID], doc[URL], doc[PRIORITY], doc[META]
  end
end
if #taken > 0 then
  table.insert(out, 1, pages.text())
  renewDue(q)
  if door ~= CALLS then toEnd(q, SLOTS) end
  if not till then call('SET', base .. ':t:' .. owner, cmsgpack.pack({ number, taken })) end
end
if q then refresh(q) end
return done(out)
