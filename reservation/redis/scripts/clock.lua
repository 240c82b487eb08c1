-- The time, in ms since 1970 by Redis' own clock, and the expiry of keys.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function expire_at(key, ms) redis.call('PEXPIREAT', key, ms) end
local function keep(key) redis.call('PERSIST', key) end
