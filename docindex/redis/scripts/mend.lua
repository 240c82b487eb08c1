-- mend restores what can be derived after a key of a wrong type was deleted. "list": source ("names", or "c:" and a
-- crawl), cursor: returns the next cursor, and queue and host of each. "crawls": returns all crawls. "queue": queue,
-- whether to restore its documents, cursor: returns the next cursor. "host": name, its queues. "ends": cursor:
-- returns the next cursor. "done": the key, which is removed from the list of broken keys.
local mend = {}

function mend.list()
  local source, cursor, out = arg(), arg(), {}
  local page = call(source == 'names' and 'HSCAN' or 'ZSCAN', base .. ':' .. source, cursor, 'COUNT', SOME)
  for i = 1, #page[2], 2 do
    local q = queue(source == 'names' and page[2][i + 1] or page[2][i])
    if q and not q.gone then out[#out + 1], out[#out + 2] = q.id, q.h end
  end
  return { page[1], out }
end

function mend.crawls() return { '0', call('SMEMBERS', base .. ':crawls') } end

-- hold puts a document in transit back where the end of its lease, or of its daemon, finds it.
function mend.hold(doc, ref)
  local who = doc[OWNER]
  if who == '' then
    if not call('ZSCORE', base .. ':l', ref) then call('ZADD', base .. ':l', now + ownerLease, ref) end
    return
  end
  call('SADD', base .. ':o:' .. who, ref)
  if not call('ZSCORE', base .. ':a', who) then call('ZADD', base .. ':a', now + ownerLease, who) end
end

function mend.document(q, hash, doc)
  if doc[STATE] == SCHEDULED then call('ZADD', order(q), doc[DUE], member(doc, hash)) end
  if doc[STATE] == TRANSIT then mend.hold(doc, q.id .. ':' .. hash) end
  if owners.of(q, doc) ~= '' or packed.unique(doc[META]) ~= '' then call('ZADD', owners.kin(q), 0, owners.kinOf(doc[URL]) .. hash) end
  local name = doc[CRAWL] and crawlName(crawlOf(doc[CRAWL])) or ''
  if name ~= '' and not numberOf(name) then
    call('HSET', base .. ':k', name, doc[CRAWL])
    call('ZADD', base .. ':kn', 0, name)
    crawlNumbers[name] = doc[CRAWL]
  end
end

function mend.documents(q, cursor)
  if cursor == '0' then call('UNLINK', order(q), owners.kin(q)) end
  q.lm = nil -- counted again when its order is whole
  local page = call('HSCAN', bodies(q), cursor, 'COUNT', SOME)
  for i = 1, #page[2], 2 do
    local doc = unpacked(q, page[2][i + 1])
    if doc then mend.document(q, page[2][i], doc) end
  end
  if page[1] == '0' and call('EXISTS', bodies(q)) == 0 then -- the documents were lost
    for state = 1, 3 do count(q, state, -q.n[state]) end
    q.o = { 0, 0, 0 }
  end
  return page[1]
end

function mend.places(q)
  for _, key in ipairs({ ':r1:' .. q.c, ':r:' .. q.c, ':w1', ':w2', ':p:' .. q.c, ':y:' .. q.c }) do call('ZREM', base .. key, q.id) end
  leave(q, SLOTS)
  leave(q, CALLS)
  q.p, q.y, q.u = { NOWHERE, NOWHERE }, '', 0
  call('HSET', base .. ':names', nameOf(q.c, q.k), q.id)
  call('ZADD', base .. ':c:' .. q.c, q.t, q.id)
  call('SADD', base .. ':crawls', q.c)
  renewDue(q)
  later.sync(q)
  refresh(q)
end

function mend.queue()
  local q, deep, cursor = queue(arg()), arg() == '1', arg()
  if not q or q.gone or broken.of(q) then return { '0' } end
  local next = deep and mend.documents(q, cursor) or '0'
  if next == '0' then mend.places(q) end
  return { next }
end

-- host sets a host's last request to now, because nobody knows when it was.
function mend.host()
  local h = host(arg())
  if broken.hosts[h.name] then return { '0' } end
  h.q, h.o, h.e, h.c = {}, { 0, 0, 0 }, nil, now
  while at < #ARGV do
    local q = queue(arg())
    if q and not q.gone then
      h.q[#h.q + 1] = q.id
      for door = SLOTS, LENT do h.o[door] = h.o[door] + (q.a and 0 or q.o[door]) end
    end
  end
  touchHost(h)
  refreshHost(h)
  return { '0' }
end

function mend.ends()
  local page = call('HSCAN', base .. ':k', arg(), 'COUNT', SOME)
  for i = 1, #page[2], 2 do
    local name, n = page[2][i], call('HMGET', crawlKey(page[2][i + 1]), LINED, ATSLOTS, ATCALLS, 'till')
    call('ZADD', base .. ':kn', 0, name)
    if not whyOf(name) then
      if tonumber(n[4] or 0) > 0 then call('ZADD', base .. ':ke', n[4], name) end
      if tonumber(n[1] or 0) + tonumber(n[2] or 0) + tonumber(n[3] or 0) == 0 then call('ZADD', base .. ':kf', now, name) end
    end
  end
  return { page[1] }
end

function mend.done()
  call('HDEL', base .. ':broken', arg())
  return { '0' }
end

return done(mend[arg()]())
