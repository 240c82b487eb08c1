-- worker: prefix, penalty, batch, room in ready -> OK, 1 if there may be more to do
-- Ends lost leases, expired bindings and the reports of dead holders, and moves due groups from wait to ready. Ready is
-- kept short, because removing a group from its middle takes a linear search; due groups are served from wait as well.
local penalty, batch = num(ARGV[2]), num(ARGV[3])
local more = 0
local lost = call('ZRANGEBYSCORE', BUSY, '-inf', now, 'WITHSCORES', 'LIMIT', 0, batch)
for i = 1, #lost, 2 do
  local _, broken = guarded(lost[i], function()
    local host = call('HGET', GROUP .. lost[i], 'host') or lost[i]
    unlock(lost[i], num(lost[i + 1]) + penalty)
    drop(host)
  end)
  if broken then call('ZREM', BUSY, lost[i]) end -- so that the worker meets it only once
end
if #lost == 2 * batch then more = 1 end
local ended = call('ZRANGEBYSCORE', BOUND, '-inf', now, 'LIMIT', 0, batch)
for _, host in ipairs(ended) do
  call('ZREM', BOUND, host)
  call('HDEL', ANSWERED, host)
  call('DEL', HOST .. host)
  guarded(host, rehome, host)
end
if #ended == batch then more = 1 end
local dead = call('ZRANGEBYSCORE', HOLDERS, '-inf', now, 'LIMIT', 0, 1)[1]
if dead then
  local left = guarded(dead, call, 'HRANDFIELD', HELD .. dead, batch, 'WITHVALUES') or {}
  for i = 1, #left, 2 do
    call('HDEL', HELD .. dead, left[i])
    if call('HEXISTS', KNOWN, left[i]) == 1 then guarded(left[i], recount, left[i], { DEFAULT = 0 - num(left[i + 1]) }) end
  end
  if #left < 2 * batch then call('ZREM', HOLDERS, dead) end
  more = 1
end
dead = call('ZRANGEBYSCORE', TELLERS, '-inf', now, 'LIMIT', 0, 1)[1]
if dead then
  local some = math.ceil(batch / 20) -- of a thousand crawls at most
  local left = guarded(dead, call, 'HRANDFIELD', PARTS .. dead, some, 'WITHVALUES') or {}
  for i = 1, #left, 2 do
    local crawls = cmsgpack.unpack(left[i + 1])
    for crawl, n in pairs(crawls) do crawls[crawl] = 0 - n end
    call('HDEL', PARTS .. dead, left[i])
    if call('HEXISTS', KNOWN, left[i]) == 1 then guarded(left[i], recount, left[i], crawls) end
  end
  if #left < 2 * some then call('ZREM', TELLERS, dead) end
  more = 1
end
local room = num(ARGV[4]) - call('LLEN', READY)
if room > 0 then
  local due = call('ZRANGEBYSCORE', WAIT, '-inf', now, 'LIMIT', 0, math.min(room, batch))
  for _, id in ipairs(due) do
    call('ZREM', WAIT, id)
    call('RPUSH', READY, id)
  end
  if #due == batch then more = 1 end
end
return { OK, more }
