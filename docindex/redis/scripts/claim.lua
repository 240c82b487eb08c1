-- claim counts documents of other shards as out on hosts of this one: consumer, lease in ms ('': the owner's), then
-- host and document of each. It returns 1 for each whose host was free, else 0.
local door, lease = num(), num()
local till = lease and now + lease
local out = {}
while at < #ARGV do
  local name, ref = arg(), arg()
  local h = host(name)
  local free = broken.holdable(till) and not elsewhere(h, door) and whenHost(h, door) <= now
  if free then
    hold(door, till, claimOf(door, name, ref))
    outHost(h, door)
  end
  out[#out + 1] = free and 1 or 0
end
return done(out)
