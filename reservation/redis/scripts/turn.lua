-- The uncommon cases of a batch, which turn.quick.lua leaves over.
local function release(n)
  local host, ms = ARGV[3 * n], moment(ARGV[3 * n + 2], now)
  local id, wrong = held(host, ARGV[3 * n + 1])
  if not id then return wrong end
  unlock(id, ms)
  if num(call('HGET', COUNT, host)) <= 0 then forget(host) end
  return OK
end
for _, n in ipairs(rest) do
  local answer, broken = guarded(ARGV[3 * n], release, n)
  answers[n + 1] = answer or broken
end

local function take(id)
  local t = time(id)
  if t and t <= now then
    local host = call('ZRANGE', DUE .. id, 0, 0)[1]
    if host == id or group_of(host) == id then
      took(unpack(reserve(host, id, tonumber(ARGV[i]), ARGV[i + 1])))
    else
      rehome(host) -- its binding has ended
      requeue(id)
    end
  elseif t then
    requeue(id)
  elseif adopt(id) then
    call('ZREM', WAIT, id)
    take(id)
  end
end
for _ = 1, more and most + 100 or 0 do
  local id = most > 0 and pop(1)[1]
  if not id then break end
  guarded(id, take, id) -- a group with a key of a wrong type stays out of the queues
end
return answers
