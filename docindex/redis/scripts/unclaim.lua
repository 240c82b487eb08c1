-- unclaim ends claims: owner ('': it had a lease), door, document, host each; and takes what the slots learned of hosts, which is
-- "pause", until in ms from now, gap in ms, host.
while at < #ARGV do
  local who, door, ref, name = arg(), num(), arg(), arg()
  local h = host(name)
  if who == 'pause' then
    h.p, h.g = max(h.p, now + door), tonumber(ref)
    touchHost(h)
    refreshHost(h)
  else
    local claim = claimOf(door, name, ref)
    if unhold('', claim) or who ~= '' and unhold(who, claim) then backHost(h, door) end
  end
end
return done({})
