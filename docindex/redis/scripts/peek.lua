-- peek lists queues in the ring of the slots, in their order; take checks them again. Arguments: the last take whose
-- answer arrived, consumer, most, queues to leave out, hosts to leave out. It returns whether there is more to catch up
-- with, the place after which it may have left out some ('': none), and queue, place, tie, whether it has several hosts,
-- and scheduled documents of each.
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
local out, from, cut = {}, 0, nil
repeat
  local list = call('ZRANGE', base .. ':r', from, from + SOME - 1, 'WITHSCORES')
  for i = 1, #list, 2 do
    local q = queue(list[i])
    if not q then
      call('ZREM', base .. ':r', list[i])
    elseif not passed[q.id] and (q.a or not rejected[q.h] and not elsewhere(host(q.h), door)) then
      local n = #out
      out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = q.id, list[i + 1], q.j[SLOTS], q.a and 1 or 0, q.n[SCHEDULED]
      if n + 5 == 5 * most then
        cut = list[i + 1]
        break
      end
    end
  end
  from = from + SOME
until cut or #list < 2 * SOME
return done({ more and 1 or 0, cut or '', out })
