-- ready lists queues that a call may serve, in the order of their places: most per crawl, URLs in transit that a queue
-- has at most, whether of any crawl, crawl, key ('': any), how many queues to leave out, those queues.
-- It returns whether this shard has more to catch up with; crawls of which it may have left out queues, each with the place after
-- which; queue, place, tie, whether its URLs are on several hosts, how many it may give, key, crawl and how it stands
-- (aside.how) of each (it lists few of a domain that is set aside, and some of many such domains); and
-- whether other queues wait only because another call serves them, or because they have as many URLs in transit as
-- they may.
local more, most, limit, any, only = catchUp(), num(), num(), arg() == '1', arg()
local key, passed = arg(), {}
for _ = 1, num() do passed[arg()] = true end
local crawls = any and call('SMEMBERS', base .. ':crawls') or { only }
local out, first, cuts, held = {}, 0, {}, false
if tonumber(general[2]) then return done({ 0, cuts, out, 0 }) end

local function offer(q, score)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5], out[n + 6], out[n + 7], out[n + 8] =
    q.id, score, q.j[CALLS], q.a and 1 or 0, min(limit - q.n[TRANSIT], q.n[SCHEDULED]), q.k, q.c, aside.how(q, CALLS)
end
local moves = {}

local function look(id, score, again)
  local q = queue(id)
  if not q or passed[id] then return end
  if q.p[CALLS] == READY and aside.of(q) then
    moves[#moves + 1] = q
    return
  end
  if when(q, CALLS) > now then
    again[#again + 1] = { q, false }
  elseif q.n[TRANSIT] >= limit then
    again[#again + 1] = { q, true }
  else
    offer(q, score)
  end
end

local function put(again)
  for _, one in ipairs(again) do
    if one[2] then park(one[1], limit) else
      leave(one[1], CALLS)
      place(one[1], CALLS)
    end
  end
end

local function inRing(crawl)
  local from, again = 0, {}
  first = #out
  repeat
    local list = call('ZRANGEBYSCORE', base .. ':r:' .. crawl, '-inf', '+inf', 'WITHSCORES', 'LIMIT', from, SOME)
    for i = 1, #list, 2 do
      look(list[i], list[i + 1], again)
      if #out - first == 8 * most then
        cuts[#cuts + 1], cuts[#cuts + 2] = crawl, list[i + 1]
        break
      end
    end
    from = from + SOME
  until #list < 2 * SOME or #out - first == 8 * most or #moves >= SOME
  more = more or #moves >= SOME
  for _, q in ipairs(moves) do aside.move(q, CALLS) end
  moves = {}
  aside.first(CALLS, aside.forCalls(crawl), function(q, score)
    local before = #out
    look(q.id, score, again)
    return #out > before
  end)
  put(again)
end

local function parked(crawl)
  local again = {}
  local list = call('ZRANGEBYSCORE', base .. ':p:' .. crawl, '-inf', '(' .. string.format('%.0f', limit), 'LIMIT', 0, SOME)
  for i, id in ipairs(list) do look(id, string.format('%.0f', NEVER + i), again) end
  put(again)
end

-- lookAt offers a queue that the call names, if it may be served.
local function lookAt(q)
  if when(q, CALLS) > now then
    held = held or pace(q) == 0 and q.u > now
  elseif q.n[TRANSIT] >= limit then
    if q.p[CALLS] ~= PARKED or q.e < limit then park(q, limit) end -- other calls with a higher limit may wait for it
    held = true
  elseif not passed[q.id] then
    offer(q, '0')
  end
end

-- holds returns whether a crawl has queues at their limit of URLs in transit, or queues that another call serves and
-- that no delay follows.
local function holds(crawl)
  return call('EXISTS', base .. ':p:' .. crawl) == 1 or
    call('ZCOUNT', base .. ':y:' .. crawl, '(' .. string.format('%.0f', now), '+inf') > 0
end

for _, crawl in ipairs(crawls) do
  if key ~= '' then
    local q = find(nameOf(crawl, key))
    if q then lookAt(q) end
  else
    inRing(crawl)
    parked(crawl)
    held = held or #out == 0 and holds(crawl)
  end
end
return done({ more and 1 or 0, cuts, out, held and 1 or 0 })
