-- serve gives URLs to a call: lease in ms, URLs in transit that a queue has at most, the call's token, then place, queue,
-- most, whether the call returns for more, the gap in ms that a rule sets for the host, and whether its daemon holds the
-- address, of each queue. It returns by queue how
-- many pages each URL counts as, as take does, and of each URL what late takes, URL and metadata.
local lease, limit, token = num(), num(), arg()

local function giveFrom(q, most)
  local out, pages = { '' }, branches.pages(q)
  for _, hash in ipairs(dueOf(q, min(most, limit - q.n[TRANSIT]))) do
    local doc, n = document(q, hash), #out
    if not doc then
      broken.lost(q)
      break
    end
    dispatch(q, hash, doc, CALLS, now + lease)
    pages.add(doc)
    out[n + 1], out[n + 2], out[n + 3] = string.format('%.0f:', doc[TAKEN]) .. hash, doc[URL], doc[META]
  end
  out[1] = pages.text()
  renewDue(q)
  return out
end

-- paced returns whether the rule's gap has passed. If not, it puts the queue off.
local function paced(q, gap)
  local till = after(host(q.h).c, gap)
  if till <= now then return true end
  q.z = till
  leave(q, CALLS)
  touch(q)
  place(q, CALLS)
  return false
end

-- putOff makes the host wait a gap for each URL that was given. last is when the host was requested before that.
local function putOff(q, n, gap, last)
  local h = host(q.h)
  gap = max(gap, h.g, h.k or 0)
  if n == 0 or gap == 0 then return end
  h.c = max(now, after(last, gap)) + (n - 1) * gap
  touchHost(h)
end

local answer = {}
while at < #ARGV do
  place0 = num()
  local q, most, stays, gap, holds = queue(arg()), num(), arg() == '1', num(), arg() == '1'
  local out = { '' }
  if q and holds then q.z = 0 end -- a daemon that does not may have put the queue off since it was listed
  local mine = q and q.y == token and q.u > now
  if q and not q.a and (mine or when(q, CALLS) <= now and paced(q, gap)) then
    local last = host(q.h).c
    if q.n[TRANSIT] < limit and broken.holdable(now) then out = giveFrom(q, most) end
    local n = (#out - 1) / 3
    putOff(q, n, gap, last)
    release(q)
    if n > 0 then q.v[CALLS] = up elseif not mine and q.f <= now then q.r = now + 1000 end
    if stays and n == most then begin(q, token) end
    leave(q, CALLS)
    touch(q)
    refresh(q)
  end
  answer[#answer + 1] = out
end
return done(answer)
