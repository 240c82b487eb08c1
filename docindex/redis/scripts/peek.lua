-- peek lists queues in the ring of the slots, in their order; take checks them again. Arguments: the last take whose
-- answer arrived, consumer, most, queues to leave out, hosts to leave out. It returns whether there is more to catch up
-- with, the place after which it may have left out some ('': none), and queue, place, tie, whether it has several hosts,
-- scheduled documents, key, crawl and how it stands (aside.how) of each. It lists few of a domain that is set aside, and some of many
-- such domains. If it has left out some others, it also returns those crawls with domains set aside that have others which it did not list.
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
local out, from, cut, moves = {}, 0, nil, {}

local function offer(q, score)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = q.id, score, q.j[SLOTS], q.a and 1 or 0, q.n[SCHEDULED]
  out[n + 6], out[n + 7], out[n + 8] = q.k, q.c, aside.how(q, SLOTS)
end

local function wanted(q) return not passed[q.id] and (q.a or not rejected[q.h] and not elsewhere(host(q.h), door)) end

repeat
  local list = call('ZRANGE', base .. ':r', from, from + SOME - 1, 'WITHSCORES')
  for i = 1, #list, 2 do
    local q = queue(list[i])
    if not q then
      call('ZREM', base .. ':r', list[i])
    elseif aside.of(q) then
      moves[#moves + 1] = q
    elseif wanted(q) then
      offer(q, list[i + 1])
      if #out == 8 * most then
        cut = list[i + 1]
        break
      end
    end
  end
  from = from + SOME
until cut or #list < 2 * SOME or #moves >= SOME
for _, q in ipairs(moves) do aside.move(q, SLOTS) end
more = more or #moves >= SOME
local labels = call('SRANDMEMBER', base .. ':i' .. SLOTS, aside.MANY) -- others each time
aside.first(SLOTS, labels, function(q, score)
  if not wanted(q) then return false end
  offer(q, score)
  return true
end)

-- others returns crawls with domains set aside of which queues of others come after those that are listed, as far as it looks.
local function others()
  local lacks, found = {}, {}
  for _, label in ipairs(labels) do lacks[aside.crawl(label)] = true end
  if #labels == 0 then return found end
  for _, id in ipairs(call('ZRANGEBYSCORE', base .. ':r', '(' .. cut, '+inf', 'LIMIT', 0, SOME)) do
    local q = queue(id)
    if q and lacks[q.c] and not aside.of(q) and wanted(q) then
      lacks[q.c] = nil
      found[#found + 1] = q.c
    end
  end
  return found
end

return done({ more and 1 or 0, cut or '', out, cut and others() or {} })
