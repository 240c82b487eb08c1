-- settle removes crawls from an index of ending, or moves them to the time when they expire: index, then of each
-- name, the time under which the caller saw it ('': any; if it has another by now, nothing is done), the expiry that
-- another shard has ('': never), and the place of that. A crawl without documents here is deleted.
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
