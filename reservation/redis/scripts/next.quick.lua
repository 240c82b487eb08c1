-- The common case of next, groups of just their own host, before anything else is even defined.
local call, P = redis.call, ARGV[1]
local WAIT, READY, BUSY, TOKEN = KEYS[1], P .. 'chg_ready{chg}', P .. 'chg_busy{chg}', P .. 'chg_token{chg}'
local GROUP, DUE, BY, HOST = P .. 'CHG{chg}:', P .. 'chg_due{chg}:', P .. 'chg_by{chg}:', P .. 'chg_host{chg}:'
local now, longest, most = clock(), 0, 0
for i = 2, #ARGV, 3 do longest, most = math.max(longest, tonumber(ARGV[i])), most + tonumber(ARGV[i + 2]) end
local guard = call('MGET', P .. 'chg_pause{chg}', P .. 'chg_until{chg}')
if guard[1] and tonumber(guard[1]) > now then return { 2, 'paused' } end
in_force(P .. 'chg_until{chg}', guard[2], longest, now)

local function pop()
  local id = call('LPOP', READY)
  local due = call('ZRANGEBYSCORE', WAIT, '-inf', now, 'LIMIT', 0, 1)[1]
  if due then call('ZREM', WAIT, due) end
  if id and due then call('RPUSH', READY, due) end -- so that what is released at once again does not starve it
  return id or due
end

-- took adds one to what who is in turn gets, at i of ARGV.
local got, popped, i, left = { 0 }, nil, 2, tonumber(ARGV[4])
local function took(reservation)
  got[#got + 1] = reservation
  left = left - 1
  if left == 0 and #got <= most then i, left = i + 3, tonumber(ARGV[i + 5]) end
end
while #got <= most do
  local id = pop()
  if not id then break end
  local f, first = call('HMGET', GROUP .. id, 'n', 't'), call('ZRANGE', DUE .. id, 0, 0, 'WITHSCORES')
  if f[2] or f[1] and tonumber(f[1]) > now or first[1] ~= id or tonumber(first[2]) > now or call('EXISTS', BY .. id, HOST .. id) > 0 then
    popped = id
    break
  end
  local token, ends = call('INCR', TOKEN), now + tonumber(ARGV[i])
  call('ZADD', BUSY, ends, id)
  call('HSET', GROUP .. id, 't', token, 'h', ARGV[i + 1])
  took({ id, id, token, ends })
end
if not popped then return #got > 1 and got or { 2 } end
