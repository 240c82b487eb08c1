-- What all scripts share. KEYS[1] is the shard: the start of all its keys, which are in one slot. ARGV: now in microseconds
-- ('': Redis' clock), owner, its lease, the gap of the slots, the first free place in rings; from the sixth on the script's.
local base, owner, ownerLease, slotGap = KEYS[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local call, floor, max, min = redis.call, math.floor, math.max, math.min

local NEVER = 2 ^ 52 -- ms
local SCHEDULED, TRANSIT, COMPLETED = 1, 2, 3
local SLOTS, CALLS, LENT = 1, 2, 3 -- doors; a queue's times and rings are the first two's
local NOWHERE, READY, WAITING, PARKED = 0, 1, 2, 3
local STATE, DUE, PRIORITY, SEQ, CREATED, URL, ID, META, DOOR, OWNER, TAKEN, CLAIMED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
local SOME = 500 -- of a sort that one script catches up with
local STAY = 60000 -- ms that a queue is one call's between two portions

local at = 5
local function arg()
  at = at + 1
  return ARGV[at]
end
local function num() return tonumber(arg()) end

local micros = tonumber(ARGV[1])
if not micros then
  local t = call('TIME')
  micros = t[1] * 1000000 + t[2]
end
local now, up = floor(micros / 1000), math.ceil(micros / 1000)

-- Places in rings are about the time, 1024 to a ms, so that they can be compared between shards. What happens by itself has the
-- place of its time, and a tie that is the place of what it comes from.
local place0, timed, tie = tonumber(ARGV[5]), nil, 0
local function nextPlace()
  if timed then return timed end
  place0 = place0 + 1
  return place0
end

local general = call('HMGET', base .. ':g', 'delay', 'passive')
local chosen = tonumber(general[1])
local usual = chosen or 1000

-- Records are read once and written at the end.
local queues, hosts, names = {}, {}, {}
local dirtyQueues, dirtyHosts, deltas = {}, {}, {}
local loose = {} -- what is to be told to hosts of other shards
local freed = false -- whether a queue may be served by calls that might not before

local function queue(id)
  local q = queues[id]
  if q == nil then
    local text = call('GET', base .. ':q:' .. id)
    q = text and cmsgpack.unpack(text) or false
    if q then q.id = id end
    queues[id] = q
  end
  return q
end

local function touch(q) dirtyQueues[q.id] = q end

local function host(name)
  local h = hosts[name]
  if not h then
    local text = call('GET', base .. ':h:' .. name)
    h = text and cmsgpack.unpack(text) or { q = {}, o = { 0, 0, 0 }, p = 0, c = 0, g = 0 }
    h.name = name
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

local function ownPace(q)
  if q.d or chosen then return pace(q) end
  return 0
end

local function hostFree(h, door)
  local gap = h.g
  if door ~= CALLS then gap = max(gap, slotGap) end
  return after(h.c, gap)
end

local function full(q, door)
  local n = q.n[COMPLETED]
  if door ~= CALLS then n = n + q.n[TRANSIT] end
  return q.l > 0 and n >= q.l
end

-- elsewhere tells whether documents of a host are out at another door.
local function elsewhere(h, door)
  for other = SLOTS, LENT do
    if other ~= door and h.o[other] > 0 then return true end
  end
  return false
end

-- whenHost is for slots and for those that borrow, which take from the same ring: that one of them is at a host is no time to wait
-- for. elsewhere tells.
local function whenHost(h, door)
  if door == CALLS then
    if elsewhere(h, CALLS) then return NEVER end
    return max(h.p, hostFree(h, CALLS))
  end
  if h.o[CALLS] > 0 then return NEVER end
  return hostFree(h, SLOTS)
end

local function when(q, door)
  if q.gone or q.f >= NEVER or full(q, door) then return NEVER end
  local t = max(q.f, q.b, q.r, q.u, after(q.v[CALLS], pace(q)))
  if not q.a then t = max(t, whenHost(host(q.h), door)) end
  if door == CALLS then return max(t, after(q.v[SLOTS], pace(q))) end
  local own = ownPace(q)
  if own > 0 then
    if q.o[SLOTS] + q.o[LENT] > 0 then return NEVER end
    t = max(t, after(q.v[SLOTS], own))
  end
  return t
end

-- Where a queue stands: in a ring of those that may be served, among those that wait, parked, or nowhere.

local function ring(q, door)
  if door == SLOTS then return base .. ':r' end
  return base .. ':r:' .. q.c
end

local function leave(q, door)
  local p = q.p[door]
  if p == NOWHERE then return end
  local from = base .. ':w' .. door
  if p == READY then from = ring(q, door) elseif p == PARKED then from = base .. ':p:' .. q.c end
  call('ZREM', from, q.id)
  q.p[door] = NOWHERE
  touch(q)
end

local function place(q, door)
  local t, p = when(q, door), q.p[door]
  if t <= now then
    if p == READY or p == PARKED then return end
    leave(q, door)
    call('ZADD', ring(q, door), nextPlace(), q.id)
    q.p[door], q.j[door] = READY, tie
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

local function toEnd(q, door)
  if q.p[door] ~= READY then return end
  call('ZADD', ring(q, door), nextPlace(), q.id)
  q.j[door] = 0
  touch(q)
end

local function park(q, level)
  leave(q, CALLS)
  call('ZADD', base .. ':p:' .. q.c, level, q.id)
  q.p[CALLS], q.e = PARKED, level
  touch(q)
end

-- begin has a queue be one call's. Where no delay will follow, others that want it wait.
local function begin(q, token)
  q.y, q.u = token, now + STAY
  if pace(q) == 0 then call('ZADD', base .. ':y:' .. q.c, q.u, q.id) end
end

local function release(q)
  if q.y == '' then return end
  q.y, q.u = '', 0
  call('ZREM', base .. ':y:' .. q.c, q.id)
end

-- Documents.

local function bodies(q) return base .. ':b:' .. q.id end
local function order(q) return base .. ':s:' .. q.id end

local function member(doc, hash)
  return struct.pack('>I4I8', 2147483647 - doc[PRIORITY], doc[SEQ]) .. hash
end
local function hashOf(m) return string.sub(m, 13) end

local function document(q, hash)
  local text = call('HGET', bodies(q), hash)
  return text and cmsgpack.unpack(text)
end

local function keep(q, hash, doc) call('HSET', bodies(q), hash, cmsgpack.pack(doc)) end

local function dueMS(s) return min(s * 1000, NEVER - 1) end

local function renewDue(q)
  local first = call('ZRANGE', order(q), 0, 0, 'WITHSCORES')
  q.f = first[2] and dueMS(tonumber(first[2])) or NEVER
  touch(q)
end

local seq -- of schedulings; nil: not read yet
local function nextSeq()
  seq = (seq or tonumber(call('HGET', base .. ':g', 'seq') or 0)) + 1
  return seq
end

local function lineUp(q, hash, doc)
  doc[STATE], doc[DOOR], doc[OWNER], doc[TAKEN], doc[CLAIMED] = SCHEDULED, 0, '', nil, nil
  keep(q, hash, doc)
  call('ZADD', order(q), doc[DUE], member(doc, hash))
  local due = dueMS(doc[DUE])
  if due < q.f then
    q.f = due
    refresh(q)
  end
end

local function hold(door, till, ref)
  if till then
    call('ZADD', base .. ':l', till, ref)
  else
    call('SADD', base .. ':o:' .. owner, ref)
  end
end

local function unhold(who, ref)
  if who == '' then return call('ZREM', base .. ':l', ref) == 1 end
  return call('SREM', base .. ':o:' .. who, ref) == 1
end

local function outHost(h, door)
  if door == CALLS then h.c = now end
  h.o[door] = h.o[door] + 1
  touchHost(h)
  if h.o[door] == 1 or door == CALLS and h.g > 0 then refreshHost(h) end
end

local function backHost(h, door)
  h.o[door] = max(0, h.o[door] - 1)
  touchHost(h)
  if h.o[door] > 0 then return end
  if door == LENT then h.c = now end -- they may have asked it just now
  refreshHost(h)
end

-- depart sends a document out; the queue's due time is left to the caller.
local function depart(q, hash, doc, door, till)
  call('ZREM', order(q), member(doc, hash))
  move(q, SCHEDULED, TRANSIT)
  doc[STATE], doc[DOOR], doc[OWNER], doc[TAKEN] = TRANSIT, door, till and '' or owner, place0
  doc[CLAIMED] = q.a and 1 or nil
  keep(q, hash, doc)
  hold(door, till, q.id .. ':' .. hash)
  q.o[door] = q.o[door] + 1
  if not q.a then outHost(host(q.h), door) end
end

-- leaveHost counts a document in transit out of its host, which may be of another shard.
local function leaveHost(q, hash, url, door, who, claimed)
  if claimed then
    loose[#loose + 1] = { 'back', url, door, q.id .. ':' .. hash, who }
  else
    backHost(host(q.h), door)
  end
end

local function land(q, hash, doc, to)
  local door, who, claimed = doc[DOOR], doc[OWNER], doc[CLAIMED]
  unhold(who, q.id .. ':' .. hash)
  move(q, TRANSIT, to)
  if to == SCHEDULED then
    lineUp(q, hash, doc)
  else
    doc[STATE], doc[DOOR], doc[OWNER], doc[TAKEN], doc[CLAIMED] = COMPLETED, 0, '', nil, nil
    keep(q, hash, doc)
  end
  q.o[door] = max(0, q.o[door] - 1)
  if door ~= CALLS then q.v[SLOTS] = now end
  touch(q)
  if q.p[CALLS] == PARKED and q.n[TRANSIT] < q.e then leave(q, CALLS) end
  leaveHost(q, hash, doc[URL], door, who, claimed)
  refresh(q)
end

local function complete(q, hash, doc)
  if doc[STATE] == TRANSIT then
    land(q, hash, doc, COMPLETED)
  elseif doc[STATE] == SCHEDULED then
    call('ZREM', order(q), member(doc, hash))
    move(q, SCHEDULED, COMPLETED)
    doc[STATE] = COMPLETED
    keep(q, hash, doc)
    renewDue(q)
    refresh(q)
  end
end

local function plan(doc, due, priority)
  if due == -1 then due = floor(now / 1000) end
  doc[DUE], doc[PRIORITY], doc[SEQ] = due, priority, nextSeq()
end

-- renew brings a known document up to date; due false: it is completed.
local function renew(q, hash, doc, due, priority, meta)
  complete(q, hash, doc)
  if not due then
    doc[META] = ''
    keep(q, hash, doc)
    return
  end
  doc[META] = meta
  plan(doc, due, priority)
  move(q, COMPLETED, SCHEDULED)
  lineUp(q, hash, doc)
  refresh(q)
end

-- dueOf returns the hashes of the first documents of a queue that are due.
local function dueOf(q, most)
  local list = call('ZRANGEBYSCORE', order(q), '-inf', floor(now / 1000), 'LIMIT', 0, most)
  for i, m in ipairs(list) do list[i] = hashOf(m) end
  return list
end

-- What is held is "QUEUE:HASH" of a document; for one on a host of this shard whose queue is in another it is "xDOORHOST\0QUEUE:HASH".

local function claimOf(door, name, ref) return 'x' .. door .. name .. '\0' .. ref end

local function landRef(ref)
  local door, name = string.match(ref, '^x([123])([^%z]*)%z')
  if door then
    backHost(host(name), tonumber(door))
    return
  end
  local colon = string.find(ref, ':', 1, true)
  local id, hash = string.sub(ref, 1, colon - 1), string.sub(ref, colon + 1)
  local q = queue(id)
  local doc = q and not q.gone and document(q, hash)
  if not doc or doc[STATE] ~= TRANSIT then return end
  tie = doc[TAKEN]
  land(q, hash, doc, SCHEDULED)
  tie = 0
end

local function sweepOwners()
  for _, who in ipairs(call('ZRANGEBYSCORE', base .. ':a', '-inf', '(' .. string.format('%.0f', now), 'LIMIT', 0, 1)) do
    local held = call('SPOP', base .. ':o:' .. who, SOME)
    for _, ref in ipairs(held) do landRef(ref) end
    if #held == SOME then return true end
    call('ZREM', base .. ':a', who)
    call('DEL', base .. ':t:' .. who)
    return true
  end
  return false
end

local function sweepLeases()
  local over = call('ZRANGEBYSCORE', base .. ':l', '-inf', now, 'WITHSCORES', 'LIMIT', 0, SOME)
  for i = 1, #over, 2 do
    timed = tonumber(over[i + 1]) * 1024
    landRef(over[i])
    call('ZREM', base .. ':l', over[i])
  end
  timed = nil
  return #over == 2 * SOME
end

local function promote(door)
  local wait = base .. ':w' .. door
  local ids = call('ZRANGEBYSCORE', wait, '-inf', now, 'LIMIT', 0, SOME)
  local list = {}
  for _, id in ipairs(ids) do
    local q = queue(id)
    if q then list[#list + 1] = q else call('ZREM', wait, id) end
  end
  table.sort(list, function(a, b)
    if a.w[door] ~= b.w[door] then return a.w[door] < b.w[door] end
    return a.x[door] < b.x[door]
  end)
  for i, q in ipairs(list) do
    timed, tie = q.w[door] * 1024 + i, q.x[door]
    place(q, door)
  end
  timed, tie = nil, 0
  return #ids == SOME
end

-- catchUp makes true what has become due, and answers whether it left some of it. Who calls is alive.
local function catchUp()
  if owner ~= '' then call('ZADD', base .. ':a', now + ownerLease, owner) end
  local more = sweepOwners()
  more = sweepLeases() or more
  more = promote(SLOTS) or more
  return promote(CALLS) or more
end

local function keepHost(h)
  local key, o = base .. ':h:' .. h.name, h.o
  local name = h.name
  h.name = nil
  local text = cmsgpack.pack(h)
  h.name = name
  if #h.q > 0 or o[1] > 0 or o[2] > 0 or o[3] > 0 then
    call('SET', key, text)
    return
  end
  local till = max(h.p, after(h.c, max(h.g, slotGap)))
  if till > now then call('SET', key, text, 'PX', min(till - now, 10 ^ 12)) else call('DEL', key) end
end

local function keepCounts(crawl, d)
  for field, by in pairs(d) do
    if by ~= 0 then
      call('HINCRBY', base .. ':n', field, by)
      call('HINCRBY', base .. ':n:' .. crawl, field, by)
    end
  end
  if (d.q or 0) < 0 and tonumber(call('HGET', base .. ':n:' .. crawl, 'q') or 0) <= 0 then
    call('DEL', base .. ':n:' .. crawl)
    call('SREM', base .. ':crawls', crawl)
  end
end

-- done writes what has changed; each script ends with it. It answers what the script does, what is to be told to hosts of other
-- shards, and whether a queue may be served by calls that might not before.
local function done(answer)
  for id, q in pairs(dirtyQueues) do
    q.id = nil
    call('SET', base .. ':q:' .. id, cmsgpack.pack(q))
    q.id = id
  end
  for _, h in pairs(dirtyHosts) do keepHost(h) end
  for crawl, d in pairs(deltas) do keepCounts(crawl, d) end
  if seq then call('HSET', base .. ':g', 'seq', seq) end
  return { answer, loose, freed and 1 or 0 }
end

-- named resolves "QUEUE" or "@NAME", as documents are named by.
local function named(ref)
  if string.sub(ref, 1, 1) == '@' then return find(string.sub(ref, 2)) end
  return queue(ref)
end

-- whereOf says where a document is as shards keep it for its DOC_ID.
local function whereOf(q, hash) return string.match(base, '(%d+)}$') .. ' ' .. hash .. '@' .. nameOf(q.c, q.k) end

local function told(q, hash, doc)
  return {
    doc[STATE], doc[DUE], doc[PRIORITY], doc[CREATED], doc[URL], doc[ID], doc[META], q.c, q.k, q.id, hash,
  }
end
