-- While a cluster moves the slot of the keys to another node, each node has some of them. A command with two keys of
-- which one is missing fails then, and the script with it, before it has written anything.
redis.call('EXISTS', KEYS[1] .. ':nothing', KEYS[1] .. ':none')
-- first_token begins to count tokens, if there is no counter, at the time in us: a Redis that has lost all gives none
-- that it may have given before.
local function first_token(prefix, now)
  redis.call('SET', prefix .. 'chg_token{chg}', string.format('%.0f', now * 1000), 'NX')
end
-- in_force writes until when leases may be in force; have is the present value. The value is at least an eighth
-- of a lease after the end of the last lease, so that it still holds if a restart or a fail-over loses the writes of
-- some seconds. It is written with twice that spare time, so that it changes only a few times a lease.
local function in_force(prefix, have, lease, now)
  local spare = math.floor(lease / 8)
  if not have then first_token(prefix, now) end
  if now + lease + spare > (tonumber(have or 0) or 0) then
    redis.call('SET', prefix .. 'chg_until{chg}', now + lease + 2 * spare)
  end
end
-- moment parses a caller's time: ms since 1970, or "+" and ms from now. It returns now if that is later.
local function moment(text, now)
  local ms = tonumber(text)
  if text:byte(1) == 43 then ms = ms + now end
  return math.max(now, ms)
end
