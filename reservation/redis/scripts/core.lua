-- The functions that the scripts share. A script's KEYS[1] is the wait queue, whose hash tag all keys have; ARGV[1] is
-- the prefix.
--
-- A name is that of a host, a group or an alias. Beside the keys of crawl host groups, hosts that share a group have:
--   chg_known{chg}        hash host -> when it has work to do; it holds all hosts that were added
--   chg_count{chg}        hash host -> its part of its group's c
--   chg_home{chg}         hash host -> the group that it is counted in
--   chg_due{chg}:<group>  zset of the group's hosts, score = when each may be served; inf while it is not free
--   chg_lock{chg}         hash host -> the busy group that it is reserved in, if that has another name
--   chg_covers{chg}:<id>  set of the names that the reservation of id covers, without id
--   chg_by{chg}:<name>    set of the busy groups whose reservations cover the name, without the group of that name
--   chg_alias{chg}        hash host -> alias;  chg_aliased{chg}:<alias> set of its hosts;  chg_aliases{chg} set of all
--   chg_bound{chg}        zset of bound hosts, score = end of the binding
--   chg_answered{chg}     hash bound host -> the group that bind answered, if that is not the one it is bound to
-- and for daemons that report the documents they hold (script hold):
--   chg_held{chg}:<holder>  hash host -> documents of DEFAULT that the holder has; they are part of the host's count
--   chg_holders{chg}        zset of holders, score = until when their report counts
--   chg_parts{chg}:<holder> hash host -> documents of other crawls: msgpack, crawl -> documents
--   chg_tellers{chg}        zset of holders that report other crawls, same score; older daemons write neither of the two
--   chg_crawls{chg}:<host>  hash crawl -> its part of the host's count; the rest of the count is that of DEFAULT
--   chg_broken{chg}         hash key of a wrong type -> the name that it belongs to, which is not served meanwhile
-- A busy group's hash has a field "host" if the reserved host has another name.
local OK, STALE, NOT_NOW, UNKNOWN, INVALID, BROKEN = 0, 1, 2, 3, 4, 5
local P = ARGV[1]
local WAIT, READY, BUSY, TOKEN = KEYS[1], P .. 'chg_ready{chg}', P .. 'chg_busy{chg}', P .. 'chg_token{chg}'
local EXEC, TOTAL, KNOWN, COUNT = P .. 'chg_exec{chg}', P .. 'chg_total{chg}', P .. 'chg_known{chg}', P .. 'chg_count{chg}'
local HOME, LOCK, ALIAS, BOUND = P .. 'chg_home{chg}', P .. 'chg_lock{chg}', P .. 'chg_alias{chg}', P .. 'chg_bound{chg}'
local ANSWERED = P .. 'chg_answered{chg}'
local GROUP, DUE, COVERS, BY = P .. 'CHG{chg}:', P .. 'chg_due{chg}:', P .. 'chg_covers{chg}:', P .. 'chg_by{chg}:'
local HOST, ALIASED, ALIASES = P .. 'chg_host{chg}:', P .. 'chg_aliased{chg}:', P .. 'chg_aliases{chg}'
local HELD, HOLDERS = P .. 'chg_held{chg}:', P .. 'chg_holders{chg}'
local PARTS, TELLERS, CRAWLS = P .. 'chg_parts{chg}:', P .. 'chg_tellers{chg}', P .. 'chg_crawls{chg}:'
local BROKE = P .. 'chg_broken{chg}'
local call = redis.call
local now = clock()

local function num(x) return tonumber(x or 0) or 0 end

-- wrong_key returns a key of a name that has another type than the scripts give it, and that type; or nil. A
-- group's hash whose field c is no count counts as such a key.
local function wrong_key(name)
  for _, key in ipairs({ { GROUP, 'hash' }, { DUE, 'zset' }, { COVERS, 'set' }, { BY, 'set' }, { HOST, 'string' }, { ALIASED, 'set' },
    { CRAWLS, 'hash' }, { HELD, 'hash' }, { PARTS, 'hash' } }) do
    local holds = call('TYPE', key[1] .. name).ok
    if holds ~= 'none' and holds ~= key[2] then return key[1] .. name, holds end
  end
  local c = call('HGET', GROUP .. name, 'c')
  if c and c ~= '0' and (not c:find('^-?[1-9]%d*$') or #c > 15) then return GROUP .. name, 'hash whose field c is no count' end
end

-- guarded calls f for a name. If a key of the name or of its group has a wrong type, only this call fails: the key is
-- recorded and returned with its type. What f has written before stays.
local function guarded(name, f, ...)
  local ok, answer = pcall(f, ...)
  if ok then return answer end
  local names = { name }
  for _, hash in ipairs({ HOME, LOCK, ALIAS }) do names[#names + 1] = call('HGET', hash, name) or nil end
  local bound = redis.pcall('GET', HOST .. name)
  if type(bound) == 'string' then names[#names + 1] = bound end
  for _, one in ipairs(names) do
    local key, holds = wrong_key(one)
    if key then
      call('HSET', BROKE, key, one)
      return nil, { BROKEN, key, holds }
    end
  end
  error(answer)
end

local function next_of(name) return num(call('HGET', GROUP .. name, 'n')) end

local function locked(name)
  return call('ZSCORE', BUSY, name) or call('EXISTS', BY .. name) == 1
end

local function group_of(host)
  local alias = call('HGET', ALIAS, host)
  if alias then return alias end
  local bound = call('GET', HOST .. host)
  if bound then return call('HGET', ALIAS, bound) or bound end
  return host
end

-- settle sets the expiry of a group's hash: if its count is zero and it is not busy, it is kept until its n has passed.
local function settle(name)
  local key = GROUP .. name
  local f = call('HMGET', key, 'n', 'c', 't')
  if num(f[2]) > 0 or f[3] then
    keep(key)
  elseif num(f[1]) > now then
    expire_at(key, f[1])
  else
    call('DEL', key)
  end
end

-- raise sets the name's next allowed fetch time to ms, unless it is later already.
local function raise(name, ms)
  if ms > next_of(name) then call('HSET', GROUP .. name, 'n', ms) end
end

-- time returns when a group may be served; nil: not while it is busy, covered, or without a free host.
local function time(group)
  if locked(group) then return nil end
  local first = call('ZRANGE', DUE .. group, 0, 0, 'WITHSCORES')
  if not first[1] or first[2] == 'inf' then return nil end
  return math.max(num(first[2]), next_of(group))
end

-- requeue moves a group to the queue that its time requires.
local function requeue(group)
  local t = time(group)
  if call('ZSCORE', WAIT, group) then
    if t then call('ZADD', WAIT, t, group) else call('ZREM', WAIT, group) end
  elseif not t then
    call('LREM', READY, 0, group)
  elseif t > now or not call('LPOS', READY, group) then
    call('LREM', READY, 0, group)
    call('ZADD', WAIT, t, group)
  end
end

-- away keeps a host from being served until it is free.
local function away(host)
  local home = call('HGET', HOME, host)
  if home then
    call('ZADD', DUE .. home, 'inf', host)
    requeue(home)
  end
end

-- count_in moves the host's part of c to its present group.
local function count_in(host, group)
  local was = call('HGET', HOME, host)
  if was == group then return end
  local n = num(call('HGET', COUNT, host))
  if was then
    call('HINCRBY', GROUP .. was, 'c', 0 - n) -- 0 - 0 is not -0
    settle(was)
  end
  call('HINCRBY', GROUP .. group, 'c', n)
  call('HSETNX', GROUP .. group, 'n', now) -- a group's hash always has n
  call('HSET', HOME, host, group)
  keep(GROUP .. group)
end

-- rehome moves a known host to its present group, which serves it if it is free.
local function rehome(host)
  local due = call('HGET', KNOWN, host)
  if not due then return end
  local group, was = group_of(host), call('HGET', HOME, host)
  if was and was ~= group then
    call('ZREM', DUE .. was, host)
    requeue(was)
  end
  count_in(host, group)
  local at = 'inf'
  if not locked(host) then at = math.max(num(due), host == group and 0 or next_of(host)) end
  call('ZADD', DUE .. group, at, host)
  requeue(group)
end

-- adopt adds a group that another program has put into the queues, as a host of that name, unless no host can have the
-- name. It returns whether it did.
local function adopt(id)
  local c = call('HGET', GROUP .. id, 'c')
  if num(c) <= 0 or call('HEXISTS', KNOWN, id) == 1 or call('ZCARD', DUE .. id) > 0 or call('SISMEMBER', ALIASES, id) == 1
    or not id:find('^[!-~]+$') then
    return false
  end
  call('HSET', KNOWN, id, math.max(now, num(call('ZSCORE', WAIT, id))))
  call('HSET', COUNT, id, c)
  call('HSET', HOME, id, id)
  rehome(id)
  return true
end

-- cover blocks the name while the busy group id is reserved.
local function cover(id, name)
  if id == name or call('SADD', COVERS .. id, name) == 0 then return end
  call('SADD', BY .. name, id)
  if call('HEXISTS', KNOWN, name) == 1 then away(name) end
  requeue(name)
end

-- covering lists the busy groups whose reservations cover the name.
local function covering(name)
  local ids = call('SMEMBERS', BY .. name)
  if call('ZSCORE', BUSY, name) then ids[#ids + 1] = name end
  return ids
end

-- prolong extends the binding that a reservation uses, unless bind has answered another group.
local function prolong(host, group, ms)
  if call('GET', HOST .. host) == group and num(call('ZSCORE', BOUND, host)) < ms and call('HEXISTS', ANSWERED, host) == 0 then
    call('ZADD', BOUND, ms, host)
    expire_at(HOST .. host, ms)
  end
end

-- unlock ends a reservation and delays the names that it covered until ms.
local function unlock(id, ms)
  local host = call('HGET', GROUP .. id, 'host') or id
  call('HDEL', GROUP .. id, 't', 'h', 'host')
  call('ZREM', BUSY, id)
  if call('HEXISTS', KNOWN, host) == 1 then call('HSET', KNOWN, host, ms) end
  local names = call('SMEMBERS', COVERS .. id)
  if #names > 0 then call('DEL', COVERS .. id) end
  if host ~= id then call('HDEL', LOCK, host) end
  names[#names + 1] = id
  for _, name in ipairs(names) do
    if name ~= id then call('SREM', BY .. name, id) end
    raise(name, ms)
  end
  for _, name in ipairs(names) do
    rehome(name)
    requeue(name)
    settle(name)
  end
end

-- free ends the reservations that cover the name and whose leases have ended.
local function free(name, penalty)
  for _, id in ipairs(covering(name)) do
    local ends = call('ZSCORE', BUSY, id)
    if not ends then
      call('SREM', BY .. name, id)
    elseif num(ends) <= now then
      unlock(id, num(ends) + penalty)
    end
  end
end

-- held returns the busy group in which a token reserves the host; or nil and an error code.
local function held(host, token)
  local id = call('HGET', LOCK, host) or host
  local f = call('HMGET', GROUP .. id, 't', 'host')
  local ends = num(call('ZSCORE', BUSY, id))
  if f[1] and f[1] == token and (f[2] or id) == host and ends > now then return id end
  if call('HEXISTS', KNOWN, host) == 0 then return nil, UNKNOWN end
  return nil, STALE
end

-- paused returns whether new reservations have to wait, because this Redis may have lost others that are in force. If
-- not, the caller may reserve for the lease.
local function paused(lease)
  local f = call('MGET', P .. 'chg_pause{chg}', P .. 'chg_until{chg}')
  in_force(P, f[2], lease, now)
  return num(f[1]) > now
end

-- reserve gives a free host of a free group to the caller.
local function reserve(host, id, lease, holder)
  local token, ends = call('INCR', TOKEN), now + lease
  call('ZADD', BUSY, ends, id)
  call('HSET', GROUP .. id, 't', string.format('%.0f', token), 'h', holder)
  if host ~= id then
    call('ZADD', DUE .. id, 'inf', host)
    call('HSET', GROUP .. id, 'host', host)
    call('HSET', LOCK, host, id)
    cover(id, host)
    away(id) -- as a host of another group
  end
  prolong(host, id, ends)
  return { host, id, token, ends }
end

-- parts_of returns a host's counts by crawl.
local function parts_of(host)
  local parts, crawls = { DEFAULT = num(call('HGET', COUNT, host)) }, call('HGETALL', CRAWLS .. host)
  for i = 1, #crawls, 2 do
    parts[crawls[i]] = num(crawls[i + 1])
    parts.DEFAULT = parts.DEFAULT - parts[crawls[i]]
  end
  return parts
end

-- add_to adds n to a field of a hash, and deletes the field if the sum is zero or less.
local function add_to(key, field, n)
  if call('HINCRBY', key, field, n) <= 0 then call('HDEL', key, field) end
end

-- counted adds changes, by crawl, to a host's counts. No count falls below zero. It returns the change of the sum.
local function counted(host, changes, parts)
  local all = 0
  parts = parts or parts_of(host)
  for crawl, n in pairs(changes) do
    n = math.max(n, math.min(0, 0 - (parts[crawl] or 0)))
    if n ~= 0 then
      all = all + n
      add_to(EXEC, crawl, n)
      if crawl ~= 'DEFAULT' then add_to(CRAWLS .. host, crawl, n) end
    end
  end
  if all ~= 0 then
    call('HINCRBY', COUNT, host, all)
    call('HINCRBY', GROUP .. call('HGET', HOME, host), 'c', all)
    if call('INCRBY', TOTAL, all) < 0 then call('SET', TOTAL, 0) end
  end
  return all
end

-- forget deletes a host that is not busy, with its counts.
local function forget(host)
  local home, parts, changes = call('HGET', HOME, host), parts_of(host), {}
  call('ZREM', DUE .. home, host)
  requeue(home)
  for crawl, n in pairs(parts) do changes[crawl] = 0 - n end
  counted(host, changes, parts)
  call('HDEL', KNOWN, host)
  call('HDEL', COUNT, host)
  call('HDEL', HOME, host)
  settle(home)
end

-- drop forgets a host whose count is zero, unless it is busy.
local function drop(host)
  if call('HEXISTS', KNOWN, host) == 1 and num(call('HGET', COUNT, host)) <= 0 and not call('HGET', LOCK, host)
    and not (call('ZSCORE', BUSY, host) and not call('HGET', GROUP .. host, 'host')) then
    forget(host)
  end
end

-- recount applies changes to a known host's counts, and drops the host if its count becomes zero.
local function recount(host, changes)
  for _, n in pairs(changes) do
    if n ~= 0 then
      counted(host, changes)
      return drop(host)
    end
  end
end
