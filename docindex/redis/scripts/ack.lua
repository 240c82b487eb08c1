-- ack records that a crawl's end was reported: 'x' or 'f', name, round, whether this is the shard of the name.
local what, name, round = arg(), arg(), arg()
if arg() == '1' then crawlEnds.seen(what, name, round) end
local no = what == 'x' and numberOf(name)
if no then
  keepSums(crawlKey(no), { [UNTOLD] = -tonumber(call('HGET', crawlKey(no), ANSWER) or 0) })
  call('HDEL', crawlKey(no), ANSWER)
end
return done({})
