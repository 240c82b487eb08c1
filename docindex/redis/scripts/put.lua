-- put stores URLs in their order: how many, then of each place, crawl, key, host, hash, the other hash that lookUp
-- takes, identity (the owner, and behind a byte 1 the unique, if there is one), URL, DOC_ID, priority, due ('': never),
-- whether it updates a known document, whether it brings one forward, created, what is packed (docindex.Packed), the
-- spider and application of its crawl ('': none), registered domain, expiry of the crawl (0: not given; -1: never), what
-- shapes.Links tells ('': it waits in no branch), registered domain of the key.
-- It returns for each 1 new, 2 same, 3 changed, 4 another URL has its hash, 5 dropped, 6 a key that it needs is of a
-- wrong type; plus 10 if the document does not have the given DOC_ID. If an update names no owner and the document
-- has one, put does nothing and returns 'c' and the name of the document's crawl, or 'm' and what is packed of the
-- document: the caller puts the URL again with that owner.
local function make(crawl, key, name)
  local id = string.format('%d', call('HINCRBY', base .. ':g', 'queues', 1))
  local q = {
    id = id, k = key, c = crawl, h = string.gsub(key, '%.$', ''), n = { 0, 0, 0 }, o = { 0, 0, 0 }, v = { 0, 0 },
    p = { 0, 0 }, w = { 0, 0 }, x = { 0, 0 }, j = { 0, 0 }, m = 0, f = NEVER, b = 0, r = 0, l = 0, u = 0, y = '', e = 0, t = nextPlace(),
    lc = 0, lm = floor(now / 1000), ln = NEVER,
  }
  queues[id], names[name] = q, id
  call('HSET', base .. ':names', name, id)
  call('ZADD', base .. ':c:' .. crawl, q.t, id)
  call('SADD', base .. ':crawls', crawl)
  local h = host(q.h)
  h.q[#h.q + 1] = id
  touchHost(h)
  add(crawl, 'q', 1)
  local preset = call('HGET', base .. ':preset', name)
  if preset then
    call('HDEL', base .. ':preset', name)
    local s = broken.unpack(base .. ':preset', preset) or {}
    q.d, q.b, q.l = s.d, s.b or 0, s.l or 0
    call('SADD', base .. ':set', id)
  end
  touch(q)
  return q
end

local function enter(q, hash, own, url, id, priority, due, created, meta, who, domain, expires, link)
  if own ~= '' then
    call('ZADD', owners.kin(q), 0, owners.kinOf(url) .. hash)
    q.m = 1
    touch(q)
  end
  if created == 0 then created = floor(now / 1000) end
  local doc = { COMPLETED, 0, priority, 0, max(0, min(created, 4294967295)), url, id, meta, 0, '' }
  join(q, doc, who, domain, expires)
  if not due then
    doc[META] = packed.lasting(doc[META], doc[CRAWL])
    keep(q, hash, doc)
    count(q, COMPLETED, 1)
    refresh(q)
    return
  end
  plan(doc, due, priority)
  branches.enter(q, doc, link)
  count(q, SCHEDULED, 1)
  schedule(q, hash, doc)
end

-- drop drops a URL of a refused crawl. If it updates a document, the document is completed.
local function drop(q, hash, doc, id, known, name)
  bump(openCrawl(name).by, DROPPED, 1)
  if doc and known then
    if doc[STATE] ~= COMPLETED then ended(doc, -1) end
    complete(q, hash, doc)
  end
  return 5 + (doc and doc[ID] == id and 0 or 10)
end

-- unusable returns whether a URL cannot be stored, because a key that its queue or a new queue needs is of a wrong type.
local closed = broken.is(base .. ':names', 'hash')
closed = broken.is(base .. ':preset', 'hash') or closed
local crawlless = broken.is(base .. ':k', 'hash')
local function unusable(q, key, name, who)
  if closed or who ~= '' and crawlless then return true end
  if q then return broken.of(q) end
  if names[name] and broken.found[base .. ':q:' .. names[name]] then return true end
  local host_ = string.gsub(key, '%.$', '')
  return host(host_) and broken.hosts[host_]
end

-- forward returns whether a put that brings a document forward updates it, and with what priority and packed.
local function forward(doc, due, priority, meta)
  if doc[STATE] == COMPLETED then return due ~= nil, priority, meta end
  if doc[STATE] == TRANSIT or not due then return false end
  if due == -1 then due = floor(now / 1000) end
  return due < floor(doc[DUE]), doc[PRIORITY], doc[META] -- in a branch it is due at any time
end

local function putOne()
  place0 = num()
  local crawl, key, host_, hash, other, own, url, id = arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()
  local priority, due, known, sooner, created, meta = num(), num(), arg() == '1', arg() == '1', num(), arg()
  local who, domain, expires, link, site = arg(), arg(), num(), arg(), arg()
  local name = nameOf(crawl, key)
  if known and host_ ~= '' then forgotten.reported(host_, url) end
  local q = find(name)
  if unusable(q, key, name, who) then return 6 end
  local doc
  if q then doc, hash = owners.lookUp(q, own, url, hash, other, known) end
  local unique = packed.unique(meta)
  if doc and (unique == '' and doc[URL] ~= url or unique ~= '' and packed.unique(doc[META]) ~= unique) then return 4 end
  if doc and sooner and not known then known, priority, meta = forward(doc, due, priority, meta) end
  if doc and known and due and own == '' and owners.of(q, doc) ~= '' then
    return doc[CRAWL] and 'c' .. crawlName(crawlOf(doc[CRAWL])) or 'm' .. doc[META]
  end
  if who ~= '' and whyOf(fullName(who, crawl)) and not (doc and known and not due) then
    return drop(q, hash, doc, id, known, fullName(who, crawl))
  end
  if doc then
    local unnamed = doc[ID] ~= id and 10 or 0
    if not known then
      if due then sayEnd(q, doc, who, expires) end
      return 2 + unnamed
    end
    renew(q, hash, doc, due, priority, meta, who, domain, expires)
    return 3 + unnamed
  end
  q = q or make(crawl, key, name)
  aside.join(q, site)
  if not q.a and host_ ~= key then
    q.a = true
    touch(q)
    refresh(q)
  end
  enter(q, hash, own, url, id, priority, due, created, meta, who, domain, expires, link)
  return 1
end

local verdicts = {}
for i = 1, num() do verdicts[i] = putOne() end
return done(verdicts)
