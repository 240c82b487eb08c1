-- next: prefix, lease, holder, max, lease, holder, max ... -> OK, then { host, group, token, lease end } of each, first for
-- the first who asks
for _ = 1, most + 100 do
  if #got > most then break end
  local id = popped or pop()
  popped = nil
  if not id then break end
  local t = time(id)
  if t and t <= now then
    local host = call('ZRANGE', DUE .. id, 0, 0)[1]
    if host == id or group_of(host) == id then
      took(reserve(host, id, tonumber(ARGV[i]), ARGV[i + 1]))
    else
      rehome(host) -- its binding has ended
      requeue(id)
    end
  elseif t then
    requeue(id)
  end
end
return #got > 1 and got or { NOT_NOW }
