-- Crawls. A document's metadata names its crawl. The shard counts the documents that it has of each crawl. A script
-- adds up its changes of the counts, and done writes them, so the counts always agree with the documents.

local LINED, ATSLOTS, ATCALLS, FINISHED = 'l', 's', 'c', 'e' -- places of documents; these and the next are fields of a crawl's counts:
local PURGED, UNTOLD, DROPPED, SENT, LATE = 'p', 'u', 'x', 'n', 'z'
local ANSWER = 'a' -- the part of UNTOLD that the script purged answered last
local STOPPED, EXPIRED = 5, 6 -- kinds of outcomes

local crawls, crawlNumbers = {}, {}
local counted = {} -- as what documents are counted
local whys, anyRefused, cancelledBy = {}, nil, {}

local function bump(t, key, by) t[key] = (t[key] or 0) + by end

local function crawlKey(no) return base .. ':k:' .. no end

local function crawlOf(no)
  local c = crawls[no]
  if not c then
    c = { no = no, by = {}, levels = {}, queues = {}, owners = {} }
    crawls[no] = c
  end
  return c
end

-- crawlName is '' where the crawl's key has gone or is somebody else's.
local function crawlName(c)
  c.name = c.name or call('HGET', crawlKey(c.no), 'name') or ''
  return c.name
end

-- fullName returns the name of a crawl: who names its spider and application, crawl is its crawl ID.
local function fullName(who, crawl) return who .. (crawl == '' and 'DEFAULT' or crawl) end

local function numberOf(name)
  crawlNumbers[name] = crawlNumbers[name] or tonumber(call('HGET', base .. ':k', name) or nil)
  return crawlNumbers[name]
end

-- openCrawl returns a crawl, and makes it where there is none.
local function openCrawl(name)
  local no = numberOf(name)
  if not no then
    no = call('HINCRBY', base .. ':g', 'crawls', 1)
    crawlNumbers[name] = no
    call('HSET', base .. ':k', name, no)
    call('ZADD', base .. ':kn', 0, name)
    call('HSET', crawlKey(no), 'name', name)
  end
  local c = crawlOf(no)
  c.name, c.dirty = name, true
  return c
end

anyRefused = call('HLEN', base .. ':x') > 0
if broken.found[base .. ':x'] then return broken.stop(base .. ':x') end
local function refusing() return anyRefused end

-- whyOf returns the kind of outcome that a crawl was refused with; nil: it is not refused.
local function whyOf(name)
  if not refusing() then return nil end
  if whys[name] == nil then whys[name] = tonumber(call('HGET', base .. ':x', name) or nil) or false end
  return whys[name] or nil
end

-- refused returns the kind of outcome that a document's crawl was refused with; nil: it is not, or there is no crawl.
local function refused(doc)
  if not doc[CRAWL] or not refusing() then return nil end
  return whyOf(crawlName(crawlOf(doc[CRAWL])))
end

-- doc[DOMAIN] is the length of the domain if the queue's host ends with it.
local function domainOf(q, doc)
  local domain = doc[DOMAIN]
  if type(domain) == 'number' then return string.sub(q.h, -domain) end
  return domain
end

-- join makes a document a member of a crawl; who '': of none. expires is when the crawl expires (s; 0: not given; -1:
-- never). If domain is empty, the document keeps its domain, or gets its queue's host. The caller must call keep
-- after that.
local function join(q, doc, who, domain, expires)
  if who == '' then
    doc[CRAWL], doc[DOMAIN], doc[CONDEMNED] = nil, nil, nil
    return
  end
  local c = openCrawl(fullName(who, q.c))
  if expires ~= 0 then c.till, c.said = max(expires, 0), place0 end
  if domain == '' then domain = doc[CRAWL] and domainOf(q, doc) or q.h end
  if #domain > 0 and string.sub(q.h, -#domain) == domain then domain = #domain end
  doc[CRAWL], doc[DOMAIN] = c.no, domain
end

-- sayEnd sets when the crawl of a known document expires, which was put again; expires 0: the put does not say.
local function sayEnd(q, doc, who, expires)
  if expires == 0 or not doc[CRAWL] then return end
  local c = crawlOf(doc[CRAWL])
  if crawlName(c) == fullName(who, q.c) then c.till, c.said, c.dirty = max(expires, 0), place0, true end
end

local function placeOf(doc)
  if doc[STATE] == SCHEDULED then return LINED end
  if doc[STATE] == COMPLETED then return FINISHED end
  return doc[DOOR] == CALLS and ATCALLS or ATSLOTS
end

-- partOf returns the counts that a document belongs to; nil: it belongs to no crawl.
local function partOf(q, doc)
  if not doc[CRAWL] then return nil end
  return {
    crawl = doc[CRAWL], place = placeOf(doc), level = doc[PRIORITY] .. ' ' .. domainOf(q, doc), condemned = doc[CONDEMNED], owner = doc[OWNER],
  }
end

local function countPart(q, part, by)
  local c = crawlOf(part.crawl)
  c.dirty = true
  bump(c.by, part.place, by)
  if part.place == FINISHED then
    if part.condemned then
      bump(c.by, PURGED, by)
      if whyOf(crawlName(c)) == EXPIRED then bump(c.by, LATE, by) end
    end
    return
  end
  c.opened = c.opened or by > 0
  if part.place ~= ATCALLS then bump(c.levels, part.level, by) end
  if part.place == LINED then bump(c.queues, q.id, by) end
  if part.place == ATSLOTS and part.owner ~= '' then bump(c.owners, part.owner, by) end
end

local function recount(q, doc, part)
  local was = counted[doc]
  if was then countPart(q, was, -1) end
  if part then countPart(q, part, 1) end
  if part and part.place == ATCALLS and not (was and was.place == ATCALLS) then bump(crawlOf(part.crawl).by, SENT, 1) end
  counted[doc] = part
end

-- ended sets a document's last outcome: kind (-1: not known), status (nil: not known), time in s (nil: now). The
-- caller must call keep after that.
local function ended(doc, kind, status, at)
  doc[KIND], doc[STATUS], doc[ENDED] = kind, status or -1, at or floor(now / 1000)
end

-- countCancelled counts a document that ends because its crawl is refused. The caller must call keep after that.
local function countCancelled(doc, why)
  doc[CONDEMNED] = 1
  ended(doc, why)
  bump(crawlOf(doc[CRAWL]).by, UNTOLD, 1)
  bump(cancelledBy, why, 1)
end

local function keepSums(key, sums)
  for field, by in pairs(sums) do
    if by ~= 0 and call('HINCRBY', key, field, by) == 0 then call('HDEL', key, field) end
  end
end

-- The shard lists the changes of pending counts, with a version that grows, while a daemon has asked for them within
-- an hour. listChange lists the changed levels of a crawl, and the crawl itself. Without levels it lists the crawl
-- only if always is true.
local listChange, keepChanges
do
  local MANY = 5000 -- changes that are listed at most
  local watched, version, listed = (tonumber(general[3]) or 0) > now, tonumber(general[4] or 0), false

  function listChange(c, levels, always)
    if not watched then return end
    local next = listed and version or version + 1
    local list = { next, c.no .. ' ' }
    for level, by in pairs(levels) do
      if by ~= 0 then list[#list + 1], list[#list + 2] = next, c.no .. ' ' .. level end
    end
    if #list == 2 and not always then return end
    version, listed = next, true
    call('ZADD', base .. ':kc', unpack(list))
  end

  function keepChanges()
    if not listed then return end
    call('HSET', base .. ':g', 'changes', version)
    if call('ZCARD', base .. ':kc') <= MANY then return end
    local last = call('ZRANGE', base .. ':kc', MANY / 2, MANY / 2, 'WITHSCORES')[2]
    call('ZREMRANGEBYSCORE', base .. ':kc', '-inf', last)
    call('HSET', base .. ':g', 'unlisted', last)
  end
end

local function forgetCrawl(c)
  local key, name = crawlKey(c.no), crawlName(c)
  listChange(c, {}, true)
  call('DEL', key, key .. ':d', key .. ':q', key .. ':o')
  call('HDEL', base .. ':k', name)
  for _, index in ipairs({ ':kn', ':ke', ':kf' }) do call('ZREM', base .. index, name) end
end

-- holds returns whether this shard has documents of a crawl.
local function holds(no)
  for _, n in ipairs(call('HMGET', crawlKey(no), LINED, ATSLOTS, ATCALLS, FINISHED)) do
    if tonumber(n or 0) > 0 then return true end
  end
  return false
end

-- keepCrawl writes the changes of a crawl's counts. It forgets a crawl of which nothing is left, unless the crawl is
-- refused, or this shard has an expiry of it that other shards need first.
local function keepCrawl(c)
  local key, name = crawlKey(c.no), crawlName(c)
  if name == '' then return end
  local n, change = call('HMGET', key, LINED, ATSLOTS, ATCALLS, FINISHED), c.by
  local was = tonumber(n[1] or 0) + tonumber(n[2] or 0) + tonumber(n[3] or 0)
  local is = was + (change[LINED] or 0) + (change[ATSLOTS] or 0) + (change[ATCALLS] or 0)
  for field, by in pairs(change) do
    if field ~= UNTOLD then call('HINCRBY', base .. ':kt', field, by) end
  end
  keepSums(key, change)
  keepSums(key .. ':d', c.levels)
  keepSums(key .. ':q', c.queues)
  keepSums(key .. ':o', c.owners)
  listChange(c, c.levels, c.till)
  local why = whyOf(name)
  if is + tonumber(n[4] or 0) + (change[FINISHED] or 0) == 0 and not why then
    if call('HEXISTS', key, 'till') == 0 then return forgetCrawl(c) end
    call('ZADD', base .. ':ke', 0, name)
  elseif c.till and not why then
    call('HSET', key, 'till', c.till, 'said', c.said)
    if c.till > 0 then call('ZADD', base .. ':ke', c.till, name) else call('ZREM', base .. ':ke', name) end
  end
  if was == 0 and c.opened then
    call('HSET', key, 'round', max(micros, tonumber(call('HGET', key, 'round') or 0) + 1))
    call('ZREM', base .. ':kf', name)
  end
  if is == 0 and (was > 0 or c.opened) and not why then call('ZADD', base .. ':kf', now, name) end
end

local function keepCrawls()
  for _, c in pairs(crawls) do
    if c.dirty then keepCrawl(c) end
  end
  keepChanges()
  for why, by in pairs(cancelledBy) do call('HINCRBY', base .. ':n', 'k' .. why, by) end
end

-- Ends of crawls that one daemon has to report: 'x' and the name of a crawl that is refused or has expired, 'f' and
-- the name of one that has finished. The round is '0' for the former.

local crawlEnds = {}
function crawlEnds.key(what, name) return base .. ':f:' .. what .. name end

-- whose returns the round of an end and the daemon that is to report it; '': it was reported.
function crawlEnds.whose(what, name) return string.match(call('GET', crawlEnds.key(what, name)) or '', '^(%d+) (.*)$') end

function crawlEnds.isAlive(who) return tonumber(call('ZSCORE', base .. ':a', who) or 0) > now end

function crawlEnds.others(what, name)
  local _, who = crawlEnds.whose(what, name)
  return who and who ~= owner and crawlEnds.isAlive(who)
end

-- see returns whether the owner reports the end: no daemon does, or the one that did is dead.
function crawlEnds.see(what, name, round)
  local has, who = crawlEnds.whose(what, name)
  if has == round then
    if who == owner then return true end
    if who == '' or crawlEnds.isAlive(who) then return false end
  end
  call('ZADD', base .. ':a', now + ownerLease, owner) -- so that others notice when the owner dies
  call('SET', crawlEnds.key(what, name), round .. ' ' .. owner)
  call('SADD', base .. ':v:' .. owner, what .. name)
  return true
end

-- seen records that an end was reported, for an hour: others may have listed it before.
function crawlEnds.seen(what, name, round)
  local has, who = crawlEnds.whose(what, name)
  if has ~= round then return end
  call('SET', crawlEnds.key(what, name), round .. ' ', 'PX', 3600000)
  call('SREM', base .. ':v:' .. who, what .. name)
end

-- unsee leaves to other daemons the ends that a daemon has not reported, and returns whether there are more.
function crawlEnds.unsee(who)
  local all = call('SPOP', base .. ':v:' .. who, SOME)
  for _, end_ in ipairs(all) do
    local what, name = string.sub(end_, 1, 1), string.sub(end_, 2)
    local _, has = crawlEnds.whose(what, name)
    if has == who then
      call('DEL', crawlEnds.key(what, name))
      if what == 'x' then call('ZADD', base .. ':ke', 0, name) else call('ZADD', base .. ':kf', now, name) end
    end
  end
  return #all == SOME
end
