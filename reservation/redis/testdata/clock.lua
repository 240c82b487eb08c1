-- A clock that stands still until the test moves it, and deletes itself what has expired.
local function clock() return tonumber(redis.call('GET', ARGV[1] .. 'test_clock{chg}')) end
local function expire_at(key, ms) redis.call('ZADD', ARGV[1] .. 'test_expiry{chg}', ms, key) end
local function keep(key) redis.call('ZREM', ARGV[1] .. 'test_expiry{chg}', key) end
