-- unclaim ends claims: owner ('': it had a lease), consumer, document and host of each. It also takes what the slots
-- learned of hosts: "pause", end of the pause in ms from now, gap in ms, host; what hosts answered to clients:
-- "answer", Retry-After in ms (-1: a success), the least ordinary gap in ms, host; and claims of documents that were
-- forgotten while clients have them: "gone" with the SHA-1 sum of the URL, the end of the lease, document, host.

-- answered sets how long a host backs off (k): each failure doubles it, each success halves it.
local function answered(h, retry, least)
  local gap = max(h.g, slotGap, least)
  if retry >= 0 then
    h.k = max(min(2 * max(gap, h.k or 0), 64 * gap), retry, h.k or 0)
    pauseHost(h, retry, h.g)
  elseif h.k then
    h.k = floor(h.k / 2)
    if h.k <= gap then h.k = nil end
  end
end

while at < #ARGV do
  local who, door, ref, name = arg(), num(), arg(), arg()
  local h = host(name)
  if who == 'pause' then
    pauseHost(h, door, tonumber(ref))
    touchHost(h)
    refreshHost(h)
  elseif who == 'answer' then
    answered(h, door, tonumber(ref))
    touchHost(h)
    refreshHost(h)
  elseif string.sub(who, 1, 4) == 'gone' then
    forgotten.keepClaim(h, string.sub(who, 5), door, claimOf(CALLS, name, ref))
  else
    local claim = claimOf(door, name, ref)
    if unhold('', claim) or who ~= '' and unhold(who, claim) then inHost(h, door) end
  end
end
return done({})
