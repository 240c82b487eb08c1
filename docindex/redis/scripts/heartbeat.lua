-- heartbeat records that the owner is alive ("end": that it has ended; "gone": nothing) and catches up. It returns
-- whether there is more to catch up with, how often something was scheduled, dropped queues that still have documents,
-- how many inboxes of the owner have notifications, and keys that were of a wrong type and are not any more.
local what = arg()
if what == 'end' then call('ZADD', base .. ':a', 0, owner) end
if what ~= '' then owner = '' end
local more = catchUp()
more = aside.over() or more
call('ZREMRANGEBYSCORE', base .. ':paused', '-inf', now)
local healed, was = {}, call('HGETALL', base .. ':broken')
for i = 1, #was, 2 do
  local key, wanted = was[i], was[i + 1]
  local text = wanted == 'msgpack' and call('TYPE', key).ok == 'string' and call('GET', key)
  if text then
    broken.unpack(key, text)
  elseif wanted == 'msgpack' then
    broken.is(key, 'string')
  else
    broken.is(key, wanted)
  end
  if not broken.found[key] then healed[#healed + 1] = key end
end
return done({ more and 1 or 0, tonumber(call('HGET', base .. ':g', 'seq') or 0), call('SRANDMEMBER', base .. ':gone', 10),
  call('EXISTS', base .. ':j:' .. owner, base .. ':z:' .. owner), healed })
