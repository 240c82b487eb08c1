-- turn runs a batch of requests: prefix, number of releases, host, token and next of each, then lease, holder and max of
-- each caller that wants the next hosts
-- -> OK, a code for each release; then, if callers want the next hosts, one code for that, and host, group, token and
-- lease end of each reservation, those of the first caller first
-- This file does the common case, a group that has only the host of its own name, before the other functions are even
-- defined. The cost is in each command, each number that is formatted, and each table in an answer.
local call, P = redis.call, ARGV[1]
local WAIT, READY, BUSY = KEYS[1], P .. 'chg_ready{chg}', P .. 'chg_busy{chg}'
local GROUP, DUE, BY = P .. 'CHG{chg}:', P .. 'chg_due{chg}:', P .. 'chg_by{chg}:'
local now, wants = clock(), 3 + 3 * ARGV[2] -- index in ARGV of the first caller that wants the next hosts
local now_text = string.format('%d', now)
local answers = { 0 } -- OK, then the codes of the releases

local function num(x) return tonumber(x or 0) or 0 end -- 0 where another program wrote no number

-- any returns whether a key exists of one of the names under one of two prefixes.
local function any(names, a, b)
  if #names == 1 then return call('EXISTS', a .. names[1], b .. names[1]) > 0 end
  local keys = {}
  for n, name in ipairs(names) do keys[2 * n - 1], keys[2 * n] = a .. name, b .. name end
  return call('EXISTS', unpack(keys)) > 0
end

-- rest lists the releases that are not the common case. The common case writes the next time to n only: the times in
-- chg_known and chg_due are earlier, so n decides.
local rest = {}
if wants > 3 then
  local COVERS, hosts, until_ms, free, ready, wait = P .. 'chg_covers{chg}:', {}, {}, {}, {}, {}
  for n = 3, wants - 1, 3 do hosts[#hosts + 1] = ARGV[n] end
  local shared, ends = any(hosts, COVERS, BY), call('ZMSCORE', BUSY, unpack(hosts))
  for n, host in ipairs(hosts) do
    local f = redis.pcall('HMGET', GROUP .. host, 't', 'host', 'c', 'n') -- all nil if the key is not a hash
    local ms = moment(ARGV[3 * n + 2], now)
    answers[n + 1] = 0
    if f[1] == ARGV[3 * n + 1] and not f[2] and num(f[3]) > 0 and num(f[4]) <= ms
      and tonumber(ends[n] or 0) > now and not until_ms[host] and not (shared and any({ host }, COVERS, BY)) and redis.pcall('ZCARD', DUE .. host) == 1 then
      free[#free + 1], until_ms[host] = host, ms > now and string.format('%d', ms) or now_text
    else
      rest[#rest + 1] = n -- e.g. the same host is released twice
    end
  end
  for _, host in ipairs(free) do
    local ms = until_ms[host]
    call('HDEL', GROUP .. host, 't', 'h')
    call('HSET', GROUP .. host, 'n', ms)
    if ms == now_text then ready[#ready + 1] = host else wait[#wait + 1], wait[#wait + 2] = ms, host end
  end
  if #free > 0 then call('ZREM', BUSY, unpack(free)) end
  if #ready > 0 then call('RPUSH', READY, unpack(ready)) end
  if #wait > 0 then call('ZADD', WAIT, unpack(wait)) end
end
if wants > #ARGV and #rest == 0 then return answers end

-- pop removes up to n groups from the queues. It also moves up to n due groups from wait to ready, so that groups that
-- are released for an immediate time do not starve them.
local function pop(n)
  local ids, due = call('LPOP', READY, n) or {}, call('ZRANGEBYSCORE', WAIT, '-inf', now_text, 'LIMIT', '0', n)
  if #due == 0 then return ids end
  call('ZREM', WAIT, unpack(due))
  local later = {}
  for _, id in ipairs(due) do
    if #ids < n then ids[#ids + 1] = id else later[#later + 1] = id end
  end
  if #later > 0 then call('RPUSH', READY, unpack(later)) end
  return ids
end

-- took adds a reservation to the answer, for the caller whose arguments begin at i in ARGV.
local most, i, left = 0, wants, tonumber(ARGV[wants + 2])
local mine = #answers + 1 -- index of the code for the next hosts
local function took(host, id, token, ends)
  local n = #answers
  answers[mine], answers[n + 1], answers[n + 2], answers[n + 3], answers[n + 4] = 0, host, id, token, ends
  most, left = most - 1, left - 1
  if left == 0 and most > 0 then i, left = i + 3, tonumber(ARGV[i + 5]) end
end

-- plain returns the first of the groups, up to one that is not the common case.
local HOST = P .. 'chg_host{chg}:'
local function plain(ids)
  local list, seen, bound = {}, {}, any(ids, BY, HOST)
  for n, id in ipairs(ids) do
    local f = redis.pcall('HMGET', GROUP .. id, 'n', 't')
    if f.err or f[2] or num(f[1]) > now or seen[id] or bound and any({ id }, BY, HOST)
      or redis.pcall('ZRANGEBYSCORE', DUE .. id, '-inf', now_text, 'LIMIT', '0', '1')[1] ~= id then
      break
    end
    list[n], seen[id] = id, true
  end
  return list
end

local function reserve_plain(ids)
  local token, busy, texts = call('INCRBY', P .. 'chg_token{chg}', #ids) - #ids, {}, {}
  for n, id in ipairs(ids) do
    local lease = ARGV[i]
    local ends = now + lease
    texts[lease] = texts[lease] or string.format('%d', ends)
    call('HSET', GROUP .. id, 't', string.format('%d', token + n), 'h', ARGV[i + 1])
    busy[2 * n - 1], busy[2 * n] = texts[lease], id
    took(id, id, token + n, ends)
  end
  call('ZADD', BUSY, unpack(busy))
end

local longest, more = 0, false -- more: a group was not the common case
for n = wants, #ARGV, 3 do longest, most = math.max(longest, tonumber(ARGV[n])), most + tonumber(ARGV[n + 2]) end
if most > 0 then
  answers[mine] = 2
  local guard = call('MGET', P .. 'chg_pause{chg}', P .. 'chg_until{chg}')
  if guard[1] and tonumber(guard[1]) > now then
    answers[mine + 1], most = 'paused', 0
  else
    in_force(P, guard[2], longest, now)
  end
end
while most > 0 and not more do
  local ids = pop(most)
  if #ids == 0 then break end
  local list = plain(ids)
  if #list > 0 then reserve_plain(list) end
  more = #list < #ids
  if more then -- that group goes back to the front of ready, with all after it
    local back = {}
    for n = #ids, #list + 1, -1 do back[#back + 1] = ids[n] end
    call('LPUSH', READY, unpack(back))
  end
end
if #rest == 0 and not more then return answers end
