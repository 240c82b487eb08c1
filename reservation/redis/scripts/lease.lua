-- in_force keeps until when leases may be in force, have so far: an eighth of a lease later than the last of them ends at
-- least, so that it still holds where a restart or a fail-over has lost the writes of some seconds, and later than that, so
-- that it is written but a few times a lease.
local function in_force(key, have, lease, now)
  local spare = math.floor(lease / 8)
  if now + lease + spare > (tonumber(have or 0) or 0) then redis.call('SET', key, now + lease + 2 * spare) end
end
-- moment is the time that a caller names, no sooner than now: in ms since 1970, or "+" and so many ms from
-- now.
local function moment(text, now)
  local ms = tonumber(text)
  if text:byte(1) == 43 then ms = ms + now end
  return math.max(now, ms)
end
