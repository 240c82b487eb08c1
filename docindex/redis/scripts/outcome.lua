-- outcome ends documents: place, queue, hash, URL ('': any), kind, whether it is of an attempt, status (-1: not known),
-- when it ended (s; '': now), pause in ms, gap in ms, attempts, next due time ('': none), metadata, and as in put the
-- crawl's spider and application and the registered domain, of each. It returns 1, or the URL that the document has
-- instead.
local OUT_OF_SCOPE = 7 -- kind of outcome

local function endOne()
  place0 = num()
  local q, hash, url, kind, ofTry = named(arg()), arg(), arg(), num(), arg() == '1'
  local status, when, pause, gap, attempts, again, meta = num(), num(), num(), num(), num(), num(), arg()
  local who, domain = arg(), arg()
  local doc = q and not q.gone and document(q, hash)
  if not doc then return 1 end
  if url ~= '' and doc[URL] ~= url then return doc[URL] end
  if (pause > 0 or gap > 0) and q.a then
    deferred[#deferred + 1] = { 'pause', doc[URL], pause, gap }
  elseif pause > 0 or gap > 0 then
    local h = host(q.h)
    pauseHost(h, pause, gap)
    touchHost(h)
    refreshHost(h)
  end
  if doc[STATE] == COMPLETED or doc[STATE] == SCHEDULED and dueMS(doc[DUE]) > now and ofTry then return 1 end
  if doc[CRAWL] and (kind == STOPPED or kind == EXPIRED) then doc[CONDEMNED] = 1 end
  ended(doc, kind, status, when)
  local had = doc[META]
  complete(q, hash, doc)
  if kind == OUT_OF_SCOPE and doc[META] ~= had then -- it may be in scope again, with its payload
    doc[META] = had
    keep(q, hash, doc)
  end
  if doc[CRAWL] then bump(crawlOf(doc[CRAWL]).by, SENT, attempts) end
  call('HINCRBY', base .. ':n', 'k' .. string.format('%d', kind), 1)
  if again and not refused(doc) then renew(q, hash, doc, again, doc[PRIORITY], meta, who, domain, 0, had) end
  return 1
end

local answer = {}
while at < #ARGV do answer[#answer + 1] = endOne() end
return done(answer)
