-- beat says that the owner is alive, or with "end" that it has gone, and with "gone" nothing, and catches up. It answers whether there is more to
-- catch up with, how often something was scheduled, dropped queues whose documents are there still, and whether there are crawls or
-- documents for the owner's slots to end or to forget.
local what = arg()
if what == 'end' then call('ZADD', base .. ':a', 0, owner) end
if what ~= '' then owner = '' end
local more = catchUp()
return done({ more and 1 or 0, tonumber(call('HGET', base .. ':g', 'seq') or 0), call('SRANDMEMBER', base .. ':gone', 10),
  call('EXISTS', base .. ':j:' .. owner, base .. ':z:' .. owner) })
