-- beat says that the owner is alive, or with "end" that it has gone, and with "gone" nothing, and catches up. It answers whether there is more to
-- catch up with, how often something was scheduled, dropped queues whose documents are there still, whether there are crawls or
-- documents for the owner's slots to end or to forget, and keys that were of a wrong type and are no more.
local what = arg()
if what == 'end' then call('ZADD', base .. ':a', 0, owner) end
if what ~= '' then owner = '' end
local more = catchUp()
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
