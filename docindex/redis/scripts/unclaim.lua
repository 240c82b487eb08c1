-- unclaim ends claims: owner ('': it had a lease), consumer, document and host of each. It also takes what the slots
-- learned of hosts: "pause", end of the pause in ms from now, gap in ms, host.
while at < #ARGV do
  local who, door, ref, name = arg(), num(), arg(), arg()
  local h = host(name)
  if who == 'pause' then
    h.p, h.g = max(h.p, now + door), tonumber(ref)
    touchHost(h)
    refreshHost(h)
  else
    local claim = claimOf(door, name, ref)
    if unhold('', claim) or who ~= '' and unhold(who, claim) then inHost(h, door) end
  end
end
return done({})
