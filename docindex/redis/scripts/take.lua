-- take hands out to the slots: number of this take, lease in ms ('': the owner's; else it is a remote lease), then place,
-- queue and most of each. It returns hash, DOC_ID, URL, priority and metadata of each document by queue, and after those
-- of a queue its crawl unless that is DEFAULT.
local number, lease = num(), num()
local till, door = lease and now + lease, lease and LENT or SLOTS
local taken = {}

local function takeFrom(q, most)
  local out = {}
  for _, hash in ipairs(dueOf(q, most)) do
    if when(q, SLOTS) > now then break end
    local doc, n = document(q, hash), #out
    if not doc then
      broken.lost(q)
      break
    end
    dispatch(q, hash, doc, door, till)
    taken[#taken + 1] = q.id .. ':' .. hash
    out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = hash, doc[ID], doc[URL], doc[PRIORITY], doc[META]
  end
  if out[1] and q.c ~= '' then out[#out + 1] = q.c end
  renewDue(q)
  toEnd(q, SLOTS)
  refresh(q)
  return out
end

local answer = {}
while at < #ARGV do
  place0 = num()
  local q, most = queue(arg()), num()
  local may = q and not q.a and broken.holdable(till) and when(q, SLOTS) <= now and not elsewhere(host(q.h), door)
  if q and not may then refresh(q) end
  answer[#answer + 1] = may and takeFrom(q, most) or {}
end
if not till then call('SET', base .. ':t:' .. owner, cmsgpack.pack({ number, taken })) end
return done(answer)
