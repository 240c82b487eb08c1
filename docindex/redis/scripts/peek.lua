-- peek lists queues in the rings of the slots, those of each crawl in their order; take checks them again. Arguments: the last
-- take whose answer arrived, consumer, most, queues to leave out, hosts to leave out. It returns whether there is more to catch up
-- with; crawls of which it may have left out some, each with the place after which; and queue, place, tie, whether it has
-- several hosts, scheduled documents, key, crawl and how it stands (aside.how) of each. It lists some of many crawls, and looks
-- at more of them where these have nothing to offer. It lists few of a domain that is set aside, and some of many such domains.
-- Last it returns those crawls with domains set aside that have others which it did not list.
local function settle(heard)
  local text = call('GET', base .. ':t:' .. owner)
  if not text then return end
  local last = broken.unpack(base .. ':t:' .. owner, text)
  if not last or last[1] <= heard then return end
  for _, ref in ipairs(last[2]) do -- the answer was lost: nobody has them
    if call('SISMEMBER', base .. ':o:' .. owner, ref) == 1 then finishRef(ref) end
  end
  call('DEL', base .. ':t:' .. owner)
end

local function set()
  local s = {}
  for _ = 1, num() do s[arg()] = true end
  return s
end

settle(num())
local more, door, most, passed, rejected = catchUp(), num(), num(), set(), set()
local out, cuts, moves, seen = {}, {}, {}, 0 -- seen: queues in rings of crawls

local function offer(q, score)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = q.id, score, q.j[SLOTS], q.a and 1 or 0, q.n[SCHEDULED]
  out[n + 6], out[n + 7], out[n + 8] = q.k, q.c, aside.how(q, SLOTS)
end

local function wanted(q) return not passed[q.id] and (q.a or not rejected[q.h] and not elsewhere(host(q.h), door)) end

-- fetch moves queues from base:r, the ring of all crawls, where a program from before crawls took turns puts them.
local function fetch()
  local list = call('ZRANGE', base .. ':r', 0, SOME - 1, 'WITHSCORES')
  for i = 1, #list, 2 do
    local q = queue(list[i])
    call('ZREM', base .. ':r', list[i])
    if q and q.p[SLOTS] == READY then rings.add(q, SLOTS, list[i + 1]) end
  end
  return #list == 2 * SOME
end

local function look(crawl, few)
  local key, from, n, cut = rings.of(crawl, SLOTS), 0, 0, nil
  repeat
    local list = call('ZRANGE', key, from, from + SOME - 1, 'WITHSCORES')
    if from == 0 and #list == 0 then call('SREM', base .. ':r1', crawl) end
    for i = 1, #list, 2 do
      local q = queue(list[i])
      seen = seen + 1
      if not q or q.p[SLOTS] ~= READY then
        call('ZREM', key, list[i])
      elseif aside.of(q) then
        moves[#moves + 1] = q
      elseif wanted(q) then
        offer(q, list[i + 1])
        n = n + 1
        if n == few then
          cut = list[i + 1]
          break
        end
      end
    end
    from = from + SOME
  until cut or #list < 2 * SOME or #moves >= SOME
  cuts[crawl] = cut
end

more = fetch() or more
local crawls, listed = call('SRANDMEMBER', base .. ':r1', aside.MANY), {} -- others each time
for _, crawl in ipairs(crawls) do
  look(crawl, min(most, math.ceil(4 * most / #crawls)))
  listed[crawl] = true
end
if #out == 0 and #crawls == aside.MANY then -- there may be more crawls
  local till = seen + 2 * SOME
  for _, crawl in ipairs(call('SRANDMEMBER', base .. ':r1', SOME)) do
    if not listed[crawl] then
      look(crawl, math.ceil(most / 16))
      listed[crawl] = true
      if seen >= till or #out >= 8 * most or #moves >= SOME then break end
    end
  end
end
for _, q in ipairs(moves) do aside.move(q, SLOTS) end
more = more or #moves >= SOME
local labels = call('SRANDMEMBER', base .. ':i' .. SLOTS, aside.MANY) -- others each time
aside.first(SLOTS, labels, function(q, score)
  if not wanted(q) then return false end
  offer(q, score)
  return true
end)

-- others returns crawls with set-aside domains that have queues of other domains behind the listed ones. It looks at
-- SOME queues of each.
local function others()
  local seen, found = {}, {}
  for _, label in ipairs(labels) do
    local crawl = aside.crawl(label)
    if not seen[crawl] and (cuts[crawl] or not listed[crawl]) then
      for _, id in ipairs(call('ZRANGEBYSCORE', rings.of(crawl, SLOTS), '(' .. (cuts[crawl] or '-inf'), '+inf', 'LIMIT', 0, SOME)) do
        local q = queue(id)
        if q and not aside.of(q) and wanted(q) then
          found[#found + 1] = crawl
          break
        end
      end
    end
    seen[crawl] = true
  end
  return found
end

local ends = {}
for crawl, cut in pairs(cuts) do ends[#ends + 1], ends[#ends + 2] = crawl, cut end
return done({ more and 1 or 0, ends, out, others() })
