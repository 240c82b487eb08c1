-- settle takes crawls from an index of ending, or moves them there to when they expire: which index, then name, time that it stands there with
-- ('': any; else nothing is done where something came between), when the crawl expires by what another shard heard ('': never), said when,
-- each. A crawl without documents here is forgotten.
local index = base .. ':' .. arg()

local function settle(no, name, till, said)
  if no and till ~= '' and holds(no) then
    if tonumber(said) < tonumber(call('HGET', crawlKey(no), 'said') or 0) then return end
    call('HSET', crawlKey(no), 'till', till, 'said', said)
    listChange({ no = no }, {}, true)
    call('ZADD', index, till, name)
    return
  end
  call('ZREM', index, name)
  if no and not holds(no) and not whyOf(name) then
    local c = crawlOf(no)
    c.name = name
    forgetCrawl(c)
  end
end

while at < #ARGV do
  local name, score, till, said = arg(), arg(), arg(), arg()
  if score == '' or tonumber(call('ZSCORE', index, name) or -1) == tonumber(score) then settle(numberOf(name), name, till, said) end
end
return done({})
