-- purged returns how many documents of a refused crawl ended because of that and are not reported: name. It also
-- returns whether the slots of a living daemon still have to end some.
local name = arg()
local no, n, busy = numberOf(name), 0, 0
if no then
  n = tonumber(call('HGET', crawlKey(no), UNTOLD) or 0)
  if n > 0 then call('HSET', crawlKey(no), ANSWER, n) end
end
for _, who in ipairs(call('ZRANGEBYSCORE', base .. ':a', '(' .. string.format('%.0f', now), '+inf')) do
  if who ~= owner and call('SISMEMBER', base .. ':j:' .. who, name) == 1 then busy = 1 end
end
return done({ n, busy })
