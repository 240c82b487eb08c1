-- take hands out to the slots: number of this take, lease in ms ('': the owner's; else it is a remote lease), then place,
-- queue, most and whether the queue rests after a dear page of each. It returns by queue how many pages each document counts as
-- (a digit each; '': all as one), and hash, DOC_ID, URL, priority and metadata of each document.
local number, lease = num(), num()
local till, door = lease and now + lease, lease and LENT or SLOTS
local taken = {}

local function takeFrom(q, most, rests)
  local out, pages = { '' }, branches.pages(q)
  if q.i and branches.most > 0 then most = max(0, min(most, branches.most - q.o[SLOTS] - q.o[LENT])) end
  for _, hash in ipairs(dueOf(q, most)) do
    if when(q, SLOTS) > now then break end
    local doc, n = document(q, hash), #out
    if not doc then
      broken.lost(q)
      break
    end
    dispatch(q, hash, doc, door, till)
    pages.add(doc)
    taken[#taken + 1] = q.id .. ':' .. hash
    out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = hash, doc[ID], doc[URL], doc[PRIORITY], doc[META]
  end
  out[1] = pages.text()
  if rests then pages.rest() end
  renewDue(q)
  toEnd(q, SLOTS)
  refresh(q)
  return out
end

local answer = {}
while at < #ARGV do
  place0 = num()
  local q, most, rests = queue(arg()), num(), arg() == '1'
  local may = q and not q.a and broken.holdable(till) and when(q, SLOTS) <= now and not elsewhere(host(q.h), door)
  if q and not may then refresh(q) end
  answer[#answer + 1] = may and takeFrom(q, most, rests) or {}
end
if not till then call('SET', base .. ':t:' .. owner, cmsgpack.pack({ number, taken })) end
return done(answer)
