-- The common case of next, groups of just their own host, before anything else is even defined.
local call, P = redis.call, ARGV[1]
local WAIT, READY, BUSY, TOKEN = KEYS[1], P .. 'chg_ready{chg}', P .. 'chg_busy{chg}', P .. 'chg_token{chg}'
local GROUP, DUE, BY, HOST = P .. 'CHG{chg}:', P .. 'chg_due{chg}:', P .. 'chg_by{chg}:', P .. 'chg_host{chg}:'
local now, lease, most = clock(), tonumber(ARGV[2]), tonumber(ARGV[4])
local guard = call('MGET', P .. 'chg_pause{chg}', P .. 'chg_until{chg}')
if guard[1] and tonumber(guard[1]) > now then return { 2, 'paused' } end
in_force(P .. 'chg_until{chg}', guard[2], lease, now)

local function pop()
  local id = call('LPOP', READY)
  local due = call('ZRANGEBYSCORE', WAIT, '-inf', now, 'LIMIT', 0, 1)[1]
  if due then call('ZREM', WAIT, due) end
  if id and due then call('RPUSH', READY, due) end -- so that what is released at once again does not starve it
  return id or due
end

local got, popped = { 0 }, nil
while #got <= most do
  local id = pop()
  if not id then break end
  local f, first = call('HMGET', GROUP .. id, 'n', 't'), call('ZRANGE', DUE .. id, 0, 0, 'WITHSCORES')
  if f[2] or f[1] and tonumber(f[1]) > now or first[1] ~= id or tonumber(first[2]) > now or call('EXISTS', BY .. id, HOST .. id) > 0 then
    popped = id
    break
  end
  local token = call('INCR', TOKEN)
  call('ZADD', BUSY, now + lease, id)
  call('HSET', GROUP .. id, 't', token, 'h', ARGV[3])
  got[#got + 1] = { id, id, token, now + lease }
end
if not popped then return #got > 1 and got or { 2 } end
