-- release: host, token, next -> OK
-- The common case of it, a group of just its own host, before anything else is even defined.
local call, P = redis.call, ARGV[1]
local busy, now = P .. 'chg_busy{chg}', clock()
-- That n says when it may be served is enough: what chg_known and chg_due say is sooner.
local function quick(i)
  local host, ms = ARGV[i], math.max(now, tonumber(ARGV[i + 2]))
  local group = P .. 'CHG{chg}:' .. host
  local f, ends = call('HMGET', group, 't', 'host', 'c', 'n'), call('ZSCORE', busy, host)
  if f[1] ~= ARGV[i + 1] or f[2] or not ends or tonumber(ends) <= now or tonumber(f[3] or 0) <= 0 or tonumber(f[4] or 0) > ms
    or call('ZCARD', P .. 'chg_due{chg}:' .. host) ~= 1 or call('EXISTS', P .. 'chg_covers{chg}:' .. host, P .. 'chg_by{chg}:' .. host) > 0 then
    return false
  end
  call('ZREM', busy, host)
  call('HDEL', group, 't', 'h')
  call('HSET', group, 'n', ms)
  if ms <= now then call('RPUSH', P .. 'chg_ready{chg}', host) else call('ZADD', KEYS[1], ms, host) end
  return true
end

local answers, rest = { 0 }, {}
for i = 3, #ARGV, 3 do
  answers[#answers + 1] = { 0 }
  if not quick(i) then rest[#rest + 1] = i end
end
if #rest == 0 then return answers end
