-- Documents.

local function bodies(q) return base .. ':b:' .. q.id end
local function order(q) return base .. ':s:' .. q.id end

local function member(doc, hash)
  return struct.pack('>I4I8', 2147483647 - doc[PRIORITY], doc[SEQ]) .. hash
end
local function hashOf(m) return string.sub(m, 13) end

-- lost records that a document is not at its place, or cannot be read: another program wrote there.
function broken.lost(q) broken.note(bodies(q), 'hash') end

-- of returns whether a queue's documents cannot be read or written.
function broken.of(q)
  local is = broken.queues[q.id]
  if is == nil then
    is = broken.is(bodies(q), 'hash')
    is = broken.is(order(q), 'zset') or is
    is = broken.is(base .. ':u:' .. q.id, 'zset') or is
    if not q.a then is = host(q.h) and broken.hosts[q.h] or is end
    broken.queues[q.id] = is
  end
  return is
end

-- unpacked returns a document, nil if it is of a wrong type. Versions before December 2026 kept ENDED as the field e.
local function unpacked(q, text)
  local doc = broken.unpack(bodies(q), text)
  if doc and doc.e then doc[ENDED], doc.e = doc.e, nil end
  return doc
end

local function read(q, text)
  local doc = unpacked(q, text)
  if not doc then
    broken.lost(q)
    return nil
  end
  counted[doc] = partOf(q, doc)
  return doc
end

local function document(q, hash)
  local text = call('HGET', bodies(q), hash)
  return text and read(q, text)
end

local function keep(q, hash, doc)
  if doc[CRAWL] or doc[ENDED] then doc[TAKEN], doc[CLAIMED] = doc[TAKEN] or false, doc[CLAIMED] or false end -- no gaps: it is packed as a list
  if doc[ENDED] then doc[CRAWL], doc[DOMAIN], doc[CONDEMNED] = doc[CRAWL] or false, doc[DOMAIN] or false, doc[CONDEMNED] or false end
  call('HSET', bodies(q), hash, cmsgpack.pack(doc))
  recount(q, doc, partOf(q, doc))
end

-- packed reads and makes what doc[META] has: a docindex.Packed.
local packed = {}

function packed.plain(text)
  local flags = string.byte(text, 1)
  return not flags or flags >= 32
end

-- parts returns depth, unique, payload and metadata.
function packed.parts(text)
  if packed.plain(text) then return 0, '', '', text end
  local flags = string.byte(text, 1)
  local next, n = 2, {}
  for bit = 0, 2 do
    n[bit] = 0
    if floor(flags / 2 ^ bit) % 2 == 1 then
      n[bit] = struct.unpack('>I2', text, next)
      next = next + 2
    end
  end
  local unique, payload = string.sub(text, next, next + n[1] - 1), string.sub(text, next + n[1], next + n[1] + n[2] - 1)
  return n[0], unique, payload, string.sub(text, next + n[1] + n[2])
end

function packed.make(depth, unique, payload, metadata)
  local flags, head = 0, ''
  for bit, n in pairs({ [0] = depth, #unique, #payload }) do
    if n > 0 then flags = flags + 2 ^ bit end
  end
  if flags == 0 then return metadata end
  for _, n in ipairs({ depth, #unique, #payload }) do
    if n > 0 then head = head .. struct.pack('>I2', n) end
  end
  return string.char(flags) .. head .. unique .. payload .. metadata
end

function packed.unique(text)
  local _, unique = packed.parts(text)
  return unique
end

function packed.metadata(text)
  local _, _, _, metadata = packed.parts(text)
  return metadata
end

-- renewed returns what is packed of an updated document: its own unique and depth, and its own payload unless the
-- update has one.
function packed.renewed(had, new)
  if packed.plain(had) and packed.plain(new) then return new end
  local depth, unique, payload = packed.parts(had)
  local _, _, other, metadata = packed.parts(new)
  return packed.make(depth, unique, other ~= '' and other or payload, metadata)
end

-- lasting returns the part of what is packed that a completed document keeps: not the payload, and with bare not the
-- metadata.
function packed.lasting(text, bare)
  if packed.plain(text) then return bare and '' or text end
  local depth, unique, _, metadata = packed.parts(text)
  return packed.make(depth, unique, '', bare and '' or metadata)
end

-- A document's name contains its owner: who, as in crawls' names, or '' for none. A queue's field m is 0 if none of
-- its documents has an owner. Queues from before documents had owners lack the field. In queues where m is not 0,
-- owners.kin lists the documents with owners by their URLs.
local owners = {}
function owners.kin(q) return base .. ':u:' .. q.id end
function owners.kinOf(url) return string.sub(redis.sha1hex(url), 1, 16) end

-- owners.named returns whether metadata may name an owner.
function owners.named(meta) return string.find(meta, '"spiderid"', 1, true) or string.find(meta, '"appid"', 1, true) end

-- ownerOf tells a document's owner.
function owners.of(q, doc)
  if doc[CRAWL] then
    local name = crawlName(crawlOf(doc[CRAWL]))
    return string.sub(name, 1, #name - #(q.c == '' and 'DEFAULT' or q.c))
  end
  local metadata = packed.metadata(doc[META])
  if not owners.named(metadata) then return '' end
  local list = cjson.decode(metadata).spiderid -- one with an appid is of a crawl
  local spider = list and list[1] or ''
  return spider == '' and '' or #spider .. ':0:' .. spider
end

-- key returns the field in ids by which a document is found that is known by a unique; '' where it is not.
function owners.key(q, doc)
  local unique = packed.unique(doc[META])
  if unique == '' then return '' end
  return '\1' .. redis.sha1hex(nameOf(q.c, owners.of(q, doc) .. '\1' .. unique))
end

-- likeliest finds the document of a URL that an update without an owner means, by docindex.UpdateRank, and returns it
-- with its hash. A document without an owner, or from before documents had owners, has one of the two given hashes.
function owners.likeliest(q, url, hash, other)
  local first = document(q, hash)
  if q.m == 0 then return first, hash end
  local hashes = { hash, other }
  local key = owners.kinOf(url)
  for _, m in ipairs(call('ZRANGEBYLEX', owners.kin(q), '[' .. key, '(' .. key .. '\255')) do hashes[#hashes + 1] = string.sub(m, 17) end
  local best, at, rank = nil, hash, 4
  for i, one in ipairs(hashes) do
    local doc = first
    if i > 1 then doc = document(q, one) end
    if doc and doc[URL] == url then
      local is = doc[STATE] == COMPLETED and 3 or 2
      if doc[STATE] == TRANSIT and doc[DOOR] == CALLS then is = 0 elseif owners.of(q, doc) == '' and packed.unique(doc[META]) == '' then is = 1 end
      if is < rank then best, at, rank = doc, one, is end
    end
  end
  return best or first, at
end

-- lookUp returns the document of a URL and an owner, and the hash that the document has or will get. hash depends on
-- the owner. other is the hash of the URL alone, which all documents had before they had owners. Without an owner,
-- other is the hash for the case that a document of an owner has hash.
function owners.lookUp(q, own, url, hash, other, news)
  if own == '' and news then return owners.likeliest(q, url, hash, other) end
  local doc = document(q, hash)
  if q.m == 0 then return doc, hash end
  if own == '' then
    local mine = doc and (doc[URL] ~= url or owners.of(q, doc) == '')
    if mine then return doc, hash end
    local second = document(q, other)
    if doc or second then return second, other end
    return nil, hash
  end
  if doc then return doc, hash end
  local old = document(q, other)
  if old and old[URL] == url and owners.of(q, old) == own then return old, other end
  return nil, hash
end

local function forget(q, hash, doc)
  if q.m ~= 0 then call('ZREM', owners.kin(q), owners.kinOf(doc[URL]) .. hash) end
  call('HDEL', bodies(q), hash)
  recount(q, doc, nil)
end

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

-- forgotten.tell notifies the daemon whose slots have a document that is being deleted. It must not be a script's
-- first write: Redis refuses that one when its memory is full, and deleting must be possible then.
local forgotten = {}
function forgotten.tell(q, hash, doc, who)
  local key = base .. ':z:' .. who
  call('SADD', key, q.id .. ':' .. hash .. doc[ID] .. '\0' .. doc[URL])
  call('PEXPIRE', key, 2 * ownerLease) -- in case that the daemon is dead
  if who ~= owner then notify() end
end

-- later counts the documents of a queue that are due later: q.lc of them, in the second q.lm; the first is due in the second
-- q.ln. base:d has the queues with such documents by q.ln. Queues of older versions lack the fields.
local later = {}

-- sync brings the count of a queue up to now. It comes before its order changes.
function later.sync(q)
  local second = floor(now / 1000)
  if q.lm and q.lm >= second then return end
  if not q.lm or q.lc > 0 and q.ln <= second then
    local from, had = '(' .. string.format('%.0f', second), q.lc or 0
    q.lc = call('ZCOUNT', order(q), from, '+inf')
    local first = call('ZRANGEBYSCORE', order(q), from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    q.ln = first[2] and tonumber(first[2]) or NEVER
    if q.lc > 0 then call('ZADD', base .. ':d', q.ln, q.id) else call('ZREM', base .. ':d', q.id) end
    if not q.gone then add(q.c, 'l', q.lc - had) end
  end
  q.lm = second
  touch(q)
end

-- count counts a document that comes to the order of its queue (by 1), or leaves it (-1).
function later.count(q, doc, by)
  if q.gone then return end
  later.sync(q)
  local due = tonumber(doc[DUE])
  if due <= q.lm then return end
  q.lc = q.lc + by
  add(q.c, 'l', by)
  if by > 0 and (q.lc == 1 or due < q.ln) then
    q.ln = due
    call('ZADD', base .. ':d', due, q.id)
  elseif q.lc == 0 then
    call('ZREM', base .. ':d', q.id)
  end
end

-- catchUp brings the counts of all queues up to now, and returns whether it left some.
function later.catchUp()
  local ids = call('ZRANGEBYSCORE', base .. ':d', '-inf', floor(now / 1000), 'LIMIT', 0, SOME)
  for _, id in ipairs(ids) do
    local q = queue(id)
    if q then later.sync(q) else call('ZREM', base .. ':d', id) end
  end
  return #ids == SOME
end

local function schedule(q, hash, doc)
  later.count(q, doc, 1)
  doc[STATE], doc[DOOR], doc[OWNER], doc[TAKEN], doc[CLAIMED], doc[CONDEMNED] = SCHEDULED, 0, '', nil, nil, nil
  keep(q, hash, doc)
  call('ZADD', order(q), doc[DUE], member(doc, hash))
  branches.mark(q, doc)
  local due = dueMS(doc[DUE])
  if due < q.f then
    q.f = due
    refresh(q)
  end
end

-- holdable returns whether the set that lists documents as out is usable. If not, no document goes out: nobody could
-- find it again.
function broken.holdable(till)
  if broken.held == nil then
    if till then broken.held = not broken.is(base .. ':l', 'zset') else broken.held = not broken.is(base .. ':o:' .. owner, 'set') end
  end
  return broken.held
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
  if h.t then h.t = now end
  h.o[door] = h.o[door] + 1
  touchHost(h)
  if h.o[door] == 1 or door == CALLS and (h.g > 0 or h.k or h.t) then refreshHost(h) end
end

local function claimOf(door, name, ref) return 'x' .. door .. name .. '\0' .. ref end

local function inHost(h, door)
  if h.t and door ~= CALLS then h.t = now end
  h.o[door] = max(0, h.o[door] - 1)
  touchHost(h)
  if h.o[door] > 0 then return end
  if door == LENT then h.c = max(h.c, now) end -- they may have asked it just now
  refreshHost(h)
end

local dispatch
do -- a script may have 200 locals
  -- moveToTail makes a queue the last of its host: the others are served first when the host may be asked again.
  local function moveToTail(h, id)
    for i, one in ipairs(h.q) do
      if one == id then
        table.remove(h.q, i)
        h.q[#h.q + 1] = id
        return
      end
    end
  end

  -- dispatch hands a document out. The caller renews the queue's due time.
  function dispatch(q, hash, doc, door, till)
    later.count(q, doc, -1)
    call('ZREM', order(q), member(doc, hash))
    branches.took(q, doc)
    move(q, SCHEDULED, TRANSIT)
    doc[STATE], doc[DOOR], doc[OWNER], doc[TAKEN] = TRANSIT, door, till and '' or owner, place0
    doc[CLAIMED] = q.a and 1 or nil
    keep(q, hash, doc)
    hold(door, till, q.id .. ':' .. hash)
    q.o[door] = q.o[door] + 1
    if not q.a then
      local h = host(q.h)
      if h.t then moveToTail(h, q.id) end
      outHost(h, door)
    end
  end
end

-- forgotten.lease sets forgotten.till to the end of a client's lease of a document that is being forgotten (false: no
-- client has it), and forgotten.claimed to whether the document's host was claimed. The host is kept until then,
-- because the client still has the URL.
function forgotten.lease(q, hash, doc)
  local till = doc[STATE] == TRANSIT and doc[DOOR] == CALLS and tonumber(call('ZSCORE', base .. ':l', q.id .. ':' .. hash) or 0)
  forgotten.till, forgotten.claimed = till and till > now and till or false, doc[CLAIMED]
end

function forgotten.ref(h, sum) return claimOf(CALLS, h.name, 'gone' .. sum) end

-- forgotten.keepHost keeps the host of the document, after forgotten.lease. For a claimed host leaveHost does that.
-- keepHost must not be a script's first write, either.
function forgotten.keepHost(q, doc)
  if not forgotten.till or forgotten.claimed then return end
  local h = host(q.h)
  local ref = forgotten.ref(h, redis.sha1hex(doc[URL]))
  if call('ZSCORE', base .. ':l', ref) then return end
  call('ZADD', base .. ':l', forgotten.till, ref)
  h.o[CALLS], h.e = h.o[CALLS] + 1, (h.e or 0) + 1
  touchHost(h)
  refreshHost(h)
end

-- forgotten.keepClaim turns a claim of a host into one for a forgotten URL with a SHA-1 sum.
function forgotten.keepClaim(h, sum, till, claim)
  local ref = forgotten.ref(h, sum)
  if not unhold('', claim) then return end
  if call('ZSCORE', base .. ':l', ref) then
    inHost(h, CALLS)
    return
  end
  call('ZADD', base .. ':l', till, ref)
  h.e = (h.e or 0) + 1
  touchHost(h)
  refreshHost(h)
end

-- release ends that claim: the client's lease has ended, or the client has reported the URL.
function forgotten.release(h)
  h.e = max(0, (h.e or 0) - 1)
  if h.e == 0 then h.e = nil end
  touchHost(h)
  inHost(h, CALLS)
  refreshHost(h)
end

function forgotten.reported(name, url)
  local h = host((string.gsub(name, '%.$', '')))
  if (h.e or 0) > 0 and call('ZREM', base .. ':l', forgotten.ref(h, redis.sha1hex(url))) == 1 then forgotten.release(h) end
end

-- leaveHost counts a document in transit out of its host, which may be in another shard. If the document is being
-- forgotten while a client has it, the host's shard keeps the claim.
local function leaveHost(q, hash, url, door, who, claimed)
  if claimed and forgotten.till then
    deferred[#deferred + 1] = { 'gone' .. redis.sha1hex(url), url, forgotten.till, q.id .. ':' .. hash }
  elseif claimed then
    deferred[#deferred + 1] = { 'back', url, door, q.id .. ':' .. hash, who }
  else
    inHost(host(q.h), door)
  end
end

-- finish ends a document's transit. One of a refused crawl is not scheduled again.
local function finish(q, hash, doc, to)
  local door, who, claimed = doc[DOOR], doc[OWNER], doc[CLAIMED]
  local why = to == SCHEDULED and refused(doc)
  if why then
    to = COMPLETED
    countCancelled(doc, why)
  end
  unhold(who, q.id .. ':' .. hash)
  move(q, TRANSIT, to)
  if to == SCHEDULED then
    schedule(q, hash, doc)
  else
    doc[STATE], doc[DOOR], doc[OWNER], doc[TAKEN], doc[CLAIMED] = COMPLETED, 0, '', nil, nil
    doc[META] = packed.lasting(doc[META])
    keep(q, hash, doc)
  end
  q.o[door] = max(0, q.o[door] - 1)
  if door ~= CALLS then q.v[SLOTS] = now end
  branches.back(q, door)
  touch(q)
  if q.p[CALLS] == PARKED and q.n[TRANSIT] < q.e then leave(q, CALLS) end
  leaveHost(q, hash, doc[URL], door, who, claimed)
  refresh(q)
end

local function complete(q, hash, doc)
  if doc[STATE] == TRANSIT then
    finish(q, hash, doc, COMPLETED)
  elseif doc[STATE] == SCHEDULED then
    later.count(q, doc, -1)
    call('ZREM', order(q), member(doc, hash))
    move(q, SCHEDULED, COMPLETED)
    doc[STATE], doc[META] = COMPLETED, packed.lasting(doc[META])
    keep(q, hash, doc)
    renewDue(q)
    refresh(q)
  end
end

-- cancel ends a scheduled document of a refused crawl. The caller renews the queue's due time.
local function cancel(q, hash, doc, why)
  later.count(q, doc, -1)
  call('ZREM', order(q), member(doc, hash))
  move(q, SCHEDULED, COMPLETED)
  doc[STATE], doc[META] = COMPLETED, packed.lasting(doc[META])
  countCancelled(doc, why)
  keep(q, hash, doc)
end

local function plan(doc, due, priority)
  if due == -1 then due = floor(now / 1000) end
  doc[DUE], doc[PRIORITY], doc[SEQ] = due, priority, nextSeq()
end

-- renew applies an update to a known document, and makes it a member of the update's crawl. If due is false, it
-- completes the document.
local function renew(q, hash, doc, due, priority, meta, who, domain, expires, had)
  had = had or doc[META] -- completing it loses the payload
  if doc[STATE] == TRANSIT or doc[STATE] == SCHEDULED and not due then ended(doc, -1) end
  complete(q, hash, doc)
  if not due then
    doc[META] = packed.lasting(doc[META], doc[CRAWL] or not owners.named(packed.metadata(doc[META])))
    keep(q, hash, doc)
    return
  end
  join(q, doc, who, domain, expires)
  doc[META] = packed.renewed(had, meta)
  plan(doc, due, priority)
  move(q, COMPLETED, SCHEDULED)
  schedule(q, hash, doc)
  refresh(q)
end

local ends = SOME -- documents of refused crawls that a script still ends in passing

-- wanted returns whether a scheduled document may go out. It ends a document of a refused crawl.
local function wanted(q, hash)
  local doc = document(q, hash)
  if not doc then
    broken.lost(q)
    return false
  end
  if doc[CRAWL] and crawlName(crawlOf(doc[CRAWL])) == '' then return false end -- nobody knows whether it is refused
  local why = refused(doc)
  if not why then return true end
  if ends > 0 then
    ends = ends - 1
    cancel(q, hash, doc, why)
  end
  return false
end

-- dueOf returns the hashes of the first documents of a queue that are due. On the way it ends documents of refused
-- crawls. If it has ended some, it renews the queue's due time, and the caller has to refresh the queue.
local function dueOf(q, most)
  local list, ended
  repeat
    local before = ends
    list = {}
    local first = q.i and branches.first(q, most) or call('ZRANGEBYSCORE', order(q), '-inf', floor(now / 1000), 'LIMIT', 0, most)
    for _, m in ipairs(first) do
      local hash = hashOf(m)
      if not refusing() or wanted(q, hash) then list[#list + 1] = hash end
    end
    ended = ended or ends < before
  until ends == before or ends == 0
  if ended then renewDue(q) end
  return list
end

-- An entry that a hold adds is "QUEUE:HASH" of a document. For a document on a host of this shard whose queue is in
-- another shard it is "xDOORHOST\0QUEUE:HASH".

local function finishRef(ref)
  local door, name, what = string.match(ref, '^x([123])([^%z]*)%z(.*)$')
  if door and string.sub(what, 1, 4) == 'gone' then
    forgotten.release(host(name))
    return
  end
  if door then
    inHost(host(name), tonumber(door))
    return
  end
  local colon = string.find(ref, ':', 1, true)
  local id, hash = string.sub(ref, 1, colon - 1), string.sub(ref, colon + 1)
  local q = queue(id)
  local doc = q and not q.gone and document(q, hash)
  if not doc or doc[STATE] ~= TRANSIT then return end
  tie = doc[TAKEN]
  finish(q, hash, doc, SCHEDULED)
  tie = 0
end

-- catchUp applies the changes that have become due, and returns whether some are left. It also records that its
-- caller is alive.
local catchUp
do
  local function sweepOwners()
    for _, who in ipairs(call('ZRANGEBYSCORE', base .. ':a', '-inf', '(' .. string.format('%.0f', now), 'LIMIT', 0, 1)) do
      local held = call('SPOP', base .. ':o:' .. who, SOME)
      for _, ref in ipairs(held) do finishRef(ref) end
      if #held == SOME or crawlEnds.unsee(who) then return true end
      call('ZREM', base .. ':a', who)
      call('DEL', base .. ':t:' .. who, base .. ':j:' .. who, base .. ':z:' .. who)
      return true
    end
    return false
  end

  local function sweepLeases()
    local over = call('ZRANGEBYSCORE', base .. ':l', '-inf', now, 'WITHSCORES', 'LIMIT', 0, SOME)
    for i = 1, #over, 2 do
      timed = tonumber(over[i + 1]) * 1024
      finishRef(over[i])
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

  function catchUp()
    if owner ~= '' then call('ZADD', base .. ':a', now + ownerLease, owner) end
    local more = sweepOwners()
    more = sweepLeases() or more
    more = promote(SLOTS) or more
    return promote(CALLS) or more
  end
end

local function keepHost(h)
  local key, o = base .. ':h:' .. h.name, h.o
  if broken.hosts[h.name] then return end
  local name = h.name
  h.name = nil
  local text = cmsgpack.pack(h)
  h.name = name
  if #h.q > 0 or o[1] > 0 or o[2] > 0 or o[3] > 0 or h.d then
    call('SET', key, text)
    return
  end
  local till = max(h.p, h.s or 0, h.b or 0, after(h.c, max(h.g, h.k or 0, slotGap)))
  if till > now then call('SET', key, text, 'PX', min(till - now, 10 ^ 12)) else call('DEL', key) end
end

local function keepCounts(crawl, d)
  for field, by in pairs(d) do
    if by ~= 0 then
      call('HINCRBY', base .. ':n', field, by)
      call('HINCRBY', base .. ':n:' .. crawl, field, by)
    end
  end
  if (d.q or 0) < 0 and call('ZCARD', base .. ':c:' .. crawl) == 0 then
    call('DEL', base .. ':n:' .. crawl)
    call('SREM', base .. ':crawls', crawl)
  end
end

-- done writes all changes; each script ends with it. It returns the script's answer, updates for hosts of other
-- shards, whether calls may be served a queue that they might not before, broken keys, and whether the slots may ask
-- for more.
local function done(answer)
  for id, q in pairs(dirtyQueues) do
    local active = not q.gone and q.n[SCHEDULED] + q.n[TRANSIT] > 0
    if q.i and not active then branches.drop(q) end
    if q.s and active ~= (q.g or false) then
      q.g = active
      local key, domain = base .. ':m:' .. q.c, aside.domain(q)
      if call('HINCRBY', key, domain, active and 1 or -1) <= 0 then call('HDEL', key, domain) end
    end
    q.id = nil
    call('SET', base .. ':q:' .. id, cmsgpack.pack(q))
    q.id = id
  end
  branches.keep()
  for _, h in pairs(dirtyHosts) do keepHost(h) end
  for crawl, d in pairs(deltas) do keepCounts(crawl, d) end
  keepCrawls()
  if seq then call('HSET', base .. ':g', 'seq', seq) end
  return { answer, deferred, freed and 1 or 0, broken.list, branches.room and 1 or 0 }
end

-- named resolves "QUEUE" or "@NAME", as documents are named by.
local function named(ref)
  if string.sub(ref, 1, 1) == '@' then return find(string.sub(ref, 2)) end
  return queue(ref)
end

-- whereOf says where a document is as shards keep it for its DOC_ID.
local function whereOf(q, hash) return string.match(base, '(%d+)}$') .. ' ' .. hash .. '@' .. nameOf(q.c, q.k) end

-- ids adds to a list what ids has of a document: its given DOC_ID, and its key, each with its place.
function owners.ids(q, hash, doc, list)
  for _, id in ipairs({ doc[ID], owners.key(q, doc) }) do
    if id ~= '' then list[#list + 1], list[#list + 2] = id, whereOf(q, hash) end
  end
end

local function describe(q, hash, doc)
  return {
    doc[STATE], doc[DUE], doc[PRIORITY], doc[CREATED], doc[URL], doc[ID], doc[META], q.c, q.k, q.id, hash,
    doc[CRAWL] and crawlName(crawlOf(doc[CRAWL])) or '', doc[KIND] or -1, doc[STATUS] or -1, doc[ENDED] or 0,
  }
end
