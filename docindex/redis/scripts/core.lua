-- What all scripts share. KEYS[1] is the shard: the start of all its keys, which are in one slot. ARGV: now in microseconds
-- ('': Redis' clock), owner, its lease, the gap of the slots, the first free place in rings, how many documents the slots have at most of a
-- queue with branches (0: any number); from the seventh on the script's.
--
-- A script has only those statements of the shared code that it names (link.go). So a statement begins in the first column. A
-- constant in capitals stands for its value: no field of a table constructor and no other variable has its name.
local base, owner, ownerLease, slotGap = KEYS[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local floor, max, min = math.floor, math.max, math.min

local NEVER = 2 ^ 52 -- ms
local SCHEDULED, TRANSIT, COMPLETED = 1, 2, 3
local SLOTS, CALLS, LENT = 1, 2, 3 -- consumers; a queue has times and rings of the first two
local NOWHERE, READY, WAITING, PARKED, ASIDE = 0, 1, 2, 3, 4
local STATE, DUE, PRIORITY, SEQ, CREATED, URL, ID, META, DOOR, OWNER, TAKEN, CLAIMED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
local CRAWL, DOMAIN, CONDEMNED = 13, 14, 15 -- of documents of crawls only; false elsewhere if the next ones are set
local KIND, STATUS, ENDED = 16, 17, 18 -- of documents that have ended: the last outcome (-1: not known), its status (-1: not known) and time, s
local SOME = 500 -- items of one kind that one script catches up with
local STAY = 60000 -- ms for which a call keeps a queue reserved between two portions

-- If another program has written a key with a wrong type, scripts read the key as empty and leave out writes to it.
-- So only the data of that key is lost. broken.list has each such key and the type that it should have, and done
-- returns the list. After somebody has deleted the key, a heartbeat restores the data that can be derived from other
-- keys.
local broken = { found = {}, list = {}, queues = {}, hosts = {} }

function broken.note(key, wanted)
  if broken.found[key] then return end
  local n = #broken.list
  broken.found[key], broken.list[n + 1], broken.list[n + 2] = true, key, wanted
  redis.pcall('HSET', base .. ':broken', key, wanted)
end

-- stop returns the answer of a script that can do nothing without a key.
function broken.stop(key) return redis.error_reply('BROKEN ' .. key) end

-- answer returns the answer of a command that failed because of its key's type: as if the key did not exist. Other
-- errors end the script.
function broken.answer(failure, command, key)
  local why = failure.err
  if not string.find(why, 'WRONGTYPE', 1, true) and not string.find(why, 'not an integer', 1, true) then error(failure) end
  broken.note(key, ({ G = 'string', H = 'hash', S = 'set', Z = 'zset' })[string.sub(command, 1, 1)])
  if string.sub(command, 2) == 'SCAN' then return { '0', {} } end
  local empty = broken.empty[command]
  if empty == nil then return 0 end
  return empty
end
broken.empty = {
  GET = false, HGET = false, ZSCORE = false, ZRANK = false, HGETALL = {}, HKEYS = {}, HMGET = {}, SMEMBERS = {}, SPOP = {},
  SRANDMEMBER = {}, ZRANGE = {}, ZRANGEBYSCORE = {}, ZREVRANGEBYSCORE = {}, ZRANGEBYLEX = {},
}

local function call(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err then return broken.answer(answer, ...) end
  return answer
end

-- is returns whether a key has a wrong type.
function broken.is(key, wanted)
  local has = redis.call('TYPE', key).ok
  if has == 'none' or has == wanted then return false end
  broken.note(key, wanted)
  return true
end

-- unpack decodes a value; nil: there is none, or this store has not written it.
function broken.unpack(key, text)
  if not text then return nil end
  local ok, value = pcall(cmsgpack.unpack, text)
  if ok and type(value) == 'table' then return value end
  broken.note(key, 'msgpack')
  return nil
end

local at = 6
local function arg()
  at = at + 1
  return ARGV[at]
end
local function num() return tonumber(arg()) end

-- While a cluster moves the shard's slot to another node, each node has some of its keys. A command with two keys of
-- which one is missing fails then, and the script with it, before it has written anything.
redis.call('EXISTS', base .. ':nothing', base .. ':none')

local micros = tonumber(ARGV[1])
if not micros then
  local t = call('TIME')
  micros = t[1] * 1000000 + t[2]
end
local now, up = floor(micros / 1000), math.ceil(micros / 1000)

-- Places in rings follow the time, with 1024 in a ms, so that they can be compared between shards. A change that
-- becomes due by itself gets the place of its due time. Its tie is the place of the entry that it comes from.
local place0, timed, tie = tonumber(ARGV[5]), nil, 0
local function nextPlace()
  if timed then return timed end
  place0 = place0 + 1
  return place0
end

local general = call('HMGET', base .. ':g', 'delay', 'passive', 'watched', 'changes', 'aside')
if broken.found[base .. ':g'] then return broken.stop(base .. ':g') end
local chosen = tonumber(general[1])
local usual = chosen or 1000

-- notify tells other daemons at once that there are notifications for them. They look at each heartbeat, too.
local notified = false
local function notify()
  if not notified then redis.pcall('PUBLISH', base .. ':hint', owner) end -- a user without the right to publish does without
  notified = true
end

-- Records are read once and written at the end.
local queues, hosts, names = {}, {}, {}
local dirtyQueues, dirtyHosts, deltas = {}, {}, {}
local deferred = {} -- updates for hosts of other shards
local freed = false -- whether a queue may be served by calls that might not before
local branches = { most = tonumber(ARGV[6]), room = false } -- room: the slots may ask for more of a queue with branches

local function queue(id)
  local q = queues[id]
  if q == nil then
    local key = base .. ':q:' .. id
    q = broken.unpack(key, call('GET', key)) or false
    if q then q.id = id end
    queues[id] = q
  end
  return q
end

local function touch(q) dirtyQueues[q.id] = q end

local function host(name)
  local h = hosts[name]
  if not h then
    local key = base .. ':h:' .. name
    h = broken.unpack(key, call('GET', key)) or { q = {}, o = { 0, 0, 0 }, p = 0, c = 0, g = 0 }
    h.name = name
    broken.hosts[name] = broken.found[key]
    hosts[name] = h
  end
  return h
end

local function touchHost(h) dirtyHosts[h.name] = h end

local function nameOf(crawl, key) return #crawl .. ':' .. crawl .. key end

local function find(name)
  local id = names[name]
  if id == nil then
    id = call('HGET', base .. ':names', name)
    names[name] = id
  end
  return id and queue(id)
end

local function add(crawl, field, by)
  local d = deltas[crawl]
  if not d then
    d = {}
    deltas[crawl] = d
  end
  d[field] = (d[field] or 0) + by
end

local function count(q, state, by)
  local was = q.n[1] + q.n[2] > 0
  q.n[state] = q.n[state] + by
  touch(q)
  if q.gone then return end
  add(q.c, state, by)
  local is = q.n[1] + q.n[2] > 0
  if is ~= was then add(q.c, 'a', is and 1 or -1) end
end

local function move(q, from, to)
  if from ~= to then
    count(q, to, 1)
    count(q, from, -1)
  end
end

-- When a queue may be served at a door.

local function after(served, delay)
  if served == 0 or delay == 0 then return 0 end
  return served + delay
end

local function pace(q) return q.d or usual end

local function hostFree(h, door)
  local gap = max(h.g, h.k or 0)
  if door ~= CALLS then gap = max(gap, slotGap) end
  return after(h.c, gap)
end

local function full(q, door)
  local n = q.n[COMPLETED]
  if door ~= CALLS then n = n + q.n[TRANSIT] end
  return q.l > 0 and n >= q.l
end

-- elsewhere returns whether documents of a host are out at another door.
local function elsewhere(h, door)
  for other = SLOTS, LENT do
    if other ~= door and h.o[other] > 0 then return true end
  end
  return false
end

-- allowed returns when the operator's settings of a host allow a request through a door. h.b: blocked until; h.d:
-- delay; h.t: when a URL of the host was last given out, or came back from slots.
local function allowed(h, door)
  if not h.t then return 0 end
  if h.d and door ~= CALLS and h.o[SLOTS] + h.o[LENT] > 0 then return NEVER end
  return max(h.b or 0, after(h.t, h.d or 0))
end

-- pauseHost leaves a host alone for some ms, for clients and, as nobody knows which daemon asks it next, for slots. A daemon that
-- starts reads which hosts are left alone for longer than the slots' gap.
local function pauseHost(h, pause, gap)
  h.g = gap
  if pause <= 0 then return end
  h.p, h.s = max(h.p, now + pause), max(h.s or 0, now + pause)
  if h.s > now + slotGap then call('ZADD', base .. ':paused', h.s, h.name) end
end

-- h.e is how many forgotten URLs of a host clients have. No URL of the host goes out until the leases of these end,
-- or clients report them.

-- whenHost returns when a host may be requested through a door. Slots and leases of other daemons (LENT) take from
-- the same ring, so whenHost does not let one wait for the other: elsewhere does that.
local function whenHost(h, door)
  if broken.hosts[h.name] then return NEVER end
  if door == CALLS then
    if elsewhere(h, CALLS) or (h.e or 0) > 0 then return NEVER end
    return max(h.p, hostFree(h, CALLS), allowed(h, CALLS))
  end
  if h.o[CALLS] > 0 then return NEVER end
  return max(h.s or 0, hostFree(h, SLOTS), allowed(h, door))
end

local function when(q, door)
  if q.gone or q.f >= NEVER or full(q, door) then return NEVER end
  local t = max(q.f, q.b, q.r, q.u, after(q.v[CALLS], pace(q)))
  if not q.a then t = max(t, whenHost(host(q.h), door)) end
  if door == CALLS then return max(t, q.z or 0, after(q.v[SLOTS], pace(q))) end
  local own, out = (q.d or chosen) and pace(q) or 0, q.o[SLOTS] + q.o[LENT]
  if q.i and branches.most > 0 and out >= branches.most then return NEVER end
  if own > 0 then
    if out > 0 then return NEVER end
    t = max(t, after(q.v[SLOTS], own))
  end
  return t
end

-- A queue stands in one of these places: in a ring of queues that may be served, among those that wait, parked, in
-- the ring of its domain, or nowhere.

-- Domains of crawls that a daemon has set aside, since they are over their budget, have rings of their own. base:i
-- has their names (LENGTH:CRAWL DOMAIN) by the time until which they are set aside, and base:iDOOR the names of those
-- with a ring. A daemon for which the domain stays aside sets a new time when half of it has passed. Each heartbeat
-- moves queues back whose time is over. So a domain does not stay aside when its daemon has died. q.s is a queue's
-- domain, or the domain's length if the queue's key ends with it.
-- LEASE: ms for which a domain is set aside; FEW: queues of a domain in one answer; MANY: domains in one answer.
local aside = { LEASE = 600000, FEW = 8, MANY = 64, some = tonumber(general[5] or 0) > now, is = {} }

-- join sets the domain of a queue that is older than budgets.
function aside.join(q, domain)
  if q.s then return end
  q.s = string.sub(q.k, -#domain) == domain and #domain or domain
  touch(q)
end

function aside.domain(q)
  if type(q.s) == 'number' then return string.sub(q.k, -q.s) end
  return q.s
end

function aside.ring(label, door) return base .. ':i' .. door .. ':' .. label end

-- of returns whether the domain of a queue is set aside.
function aside.of(q)
  if not aside.some or not q.s then return false end
  local label = nameOf(q.c, aside.domain(q))
  if aside.is[label] == nil then aside.is[label] = tonumber(call('ZSCORE', base .. ':i', label) or 0) > now end
  return aside.is[label]
end

function aside.add(q, door, score)
  local label = nameOf(q.c, aside.domain(q))
  call('ZADD', aside.ring(label, door), score, q.id)
  call('SADD', base .. ':i' .. door, label)
  q.p[door] = ASIDE
  touch(q)
end

-- Queues that may be served are in the ring of their crawl; base:r1 has the crawls with one for the slots.
local rings = {}
function rings.of(crawl, door) return base .. (door == SLOTS and ':r1:' or ':r:') .. crawl end

function rings.add(q, door, score)
  call('ZADD', rings.of(q.c, door), score, q.id)
  if door == SLOTS then call('SADD', base .. ':r1', q.c) end
end

function rings.remove(q, door)
  local ring = rings.of(q.c, door)
  call('ZREM', ring, q.id)
  if door == SLOTS and call('EXISTS', ring) == 0 then call('SREM', base .. ':r1', q.c) end
end

-- aside.how returns how a queue stands. 0: with all others; 1: aside; 2: aside, for less than half of the time.
function aside.how(q, door)
  if q.p[door] ~= ASIDE then return 0 end
  local label = nameOf(q.c, aside.domain(q))
  local till = call('ZSCORE', base .. ':i', label)
  if not till then call('ZADD', base .. ':i', 0, label) end -- it was lost, and the heartbeat moves the queues back
  return tonumber(till or 0) > now + aside.LEASE / 2 and 1 or 2
end

-- back moves the first queues of a domain to the ring of all. It returns how many it has moved.
function aside.back(label, door, most)
  local key = aside.ring(label, door)
  local list = call('ZRANGE', key, 0, most - 1, 'WITHSCORES')
  for i = 1, #list, 2 do
    local q = queue(list[i])
    call('ZREM', key, list[i])
    if q and q.p[door] == ASIDE then
      rings.add(q, door, list[i + 1])
      q.p[door] = READY
      touch(q)
    end
  end
  if #list < 2 * most then call('SREM', base .. ':i' .. door, label) end
  return #list / 2
end

-- over moves queues back whose time is over. It returns whether there are more.
function aside.over()
  local left, list = SOME, call('ZRANGEBYSCORE', base .. ':i', '-inf', now, 'LIMIT', 0, SOME)
  for _, label in ipairs(list) do
    for door = SLOTS, CALLS do
      if left > 0 then left = left - aside.back(label, door, left) end
    end
    if left <= 0 then return true end
    call('ZREM', base .. ':i', label)
  end
  return #list == SOME
end

local function leave(q, door)
  local p = q.p[door]
  if p == NOWHERE then return end
  if p == READY then
    rings.remove(q, door)
  else
    local from = base .. ':w' .. door
    if p == ASIDE then
      from = aside.ring(nameOf(q.c, aside.domain(q)), door)
    elseif p == PARKED then
      from = base .. ':p:' .. q.c
    end
    call('ZREM', from, q.id)
  end
  q.p[door] = NOWHERE
  touch(q)
end

local function place(q, door)
  local t, p = when(q, door), q.p[door]
  if t <= now then
    if p == READY or p == PARKED or p == ASIDE then return end
    leave(q, door)
    if aside.of(q) then
      aside.add(q, door, nextPlace())
    else
      rings.add(q, door, nextPlace())
      q.p[door] = READY
    end
    q.j[door] = tie
    freed = freed or door == CALLS
    touch(q)
    return
  end
  if t < NEVER and p == WAITING and q.w[door] == t then return end
  leave(q, door)
  if t < NEVER then
    call('ZADD', base .. ':w' .. door, t, q.id)
    q.p[door], q.w[door], q.x[door] = WAITING, t, nextPlace()
    touch(q)
  end
end

local function refresh(q)
  place(q, SLOTS)
  place(q, CALLS)
end

local function refreshHost(h)
  for _, id in ipairs(h.q) do
    local q = queue(id)
    if q and not q.a then refresh(q) end
  end
end

-- move moves a queue from the ring of all to that of its domain.
function aside.move(q, door)
  if q.p[door] ~= READY then return end
  local score = call('ZSCORE', rings.of(q.c, door), q.id)
  aside.lists = nil
  rings.remove(q, door)
  aside.add(q, door, score or nextPlace())
end

function aside.crawl(label)
  local n = string.match(label, '^%d+')
  return string.sub(label, #n + 2, #n + 1 + n)
end

-- forCalls returns set-aside domains of a crawl that have queues for calls. It reads them once in a script. Of many
-- it returns some, others each time.
function aside.forCalls(crawl)
  if not aside.lists then
    aside.lists = {}
    for _, label in ipairs(call('SMEMBERS', base .. ':i' .. CALLS)) do
      local of = aside.crawl(label)
      aside.lists[of] = aside.lists[of] or {}
      table.insert(aside.lists[of], label)
    end
  end
  local all, some = aside.lists[crawl] or {}, {}
  for i = 1, min(#all, aside.MANY) do some[i] = all[(micros + i) % #all + 1] end
  return some
end

-- first visits the first queues of set-aside domains, until visit has returned true for a few of each: the more
-- domains, the fewer.
function aside.first(door, labels, visit)
  local few = max(1, min(aside.FEW, floor(2 * aside.MANY / max(1, #labels))))
  for _, label in ipairs(labels) do
    local key, n, from, stale = aside.ring(label, door), 0, 0, {}
    repeat
      local list = call('ZRANGE', key, from, from + SOME - 1, 'WITHSCORES')
      if from == 0 and #list == 0 then call('SREM', base .. ':i' .. door, label) end
      for i = 1, #list, 2 do
        local q = queue(list[i])
        if not q or q.p[door] ~= ASIDE then
          stale[#stale + 1] = list[i]
        elseif visit(q, list[i + 1]) then
          n = n + 1
          if n == few then break end
        end
      end
      from = from + SOME
    until n == few or #list < 2 * SOME
    for _, id in ipairs(stale) do call('ZREM', key, id) end
  end
end

local function toEnd(q, door)
  if q.p[door] == ASIDE then
    aside.add(q, door, nextPlace())
    q.j[door] = 0
    return
  end
  if q.p[door] ~= READY then return end
  call('ZADD', rings.of(q.c, door), nextPlace(), q.id)
  q.j[door] = 0
  touch(q)
end

local function park(q, level)
  leave(q, CALLS)
  call('ZADD', base .. ':p:' .. q.c, level, q.id)
  q.p[CALLS], q.e = PARKED, level
  touch(q)
end

-- begin reserves a queue for one call. If the queue has no delay, other calls that want it wait.
local function begin(q, token)
  q.y, q.u = token, now + STAY
  if pace(q) == 0 then call('ZADD', base .. ':y:' .. q.c, q.u, q.id) end
end

local function release(q)
  if q.y == '' then return end
  q.y, q.u = '', 0
  call('ZREM', base .. ':y:' .. q.c, q.id)
end

