-- serve gives URLs to a call: lease in ms, URLs in transit that a queue has at most, the call's token, then place, queue,
-- most, and whether the call returns for more, of each queue. It returns URL and metadata of each, by queue.
local lease, limit, token = num(), num(), arg()

local function giveFrom(q, most)
  local out = {}
  for _, hash in ipairs(dueOf(q, min(most, limit - q.n[TRANSIT]))) do
    local doc, n = document(q, hash), #out
    if not doc then
      broken.lost(q)
      break
    end
    dispatch(q, hash, doc, CALLS, now + lease)
    out[n + 1], out[n + 2] = doc[URL], doc[META]
  end
  renewDue(q)
  return out
end

local answer = {}
while at < #ARGV do
  place0 = num()
  local q, most, stays = queue(arg()), num(), arg() == '1'
  local out = {}
  local mine = q and q.y == token and q.u > now
  if q and not q.a and (mine or when(q, CALLS) <= now) then
    if q.n[TRANSIT] < limit and broken.holdable(now) then out = giveFrom(q, most) end
    release(q)
    if #out > 0 then q.v[CALLS] = up elseif not mine and q.f <= now then q.r = now + 1000 end
    if stays and #out == 2 * most then begin(q, token) end
    leave(q, CALLS)
    touch(q)
    refresh(q)
  end
  answer[#answer + 1] = out
end
return done(answer)
