-- cancel ends the scheduled documents of a refused crawl: its name, how many documents to look at, the document of
-- the first queue after which to begin (its due time and its member; '' each: from the first), queues. It returns
-- how many queues are done, and the document of the next queue after which to go on; nothing if this shard does not
-- refuse the crawl.
local name, looks, due, last = arg(), num(), arg(), arg()
local no, why = numberOf(name), whyOf(name)
if not no or not why then return done({}) end
local through = 0

-- behind returns how many documents of a queue to skip: all up to the last one of the run before, which may be gone.
local function behind(q)
  if last == '' then return 0 end
  local rank = call('ZRANK', order(q), last)
  if rank then return rank + 1 end
  call('ZADD', order(q), due, last)
  rank = call('ZRANK', order(q), last)
  call('ZREM', order(q), last)
  return rank or 0
end

-- cancelSome ends some documents of a queue, and returns whether the queue is done.
local function cancelSome(q)
  local skip = behind(q)
  local list = call('ZRANGE', order(q), skip, skip + looks - 1, 'WITHSCORES')
  looks = looks - #list / 2
  for i = 1, #list, 2 do
    local hash = hashOf(list[i])
    local doc = document(q, hash)
    if not doc then broken.lost(q) end
    if doc and doc[CRAWL] == no then cancel(q, hash, doc, why) else last, due = list[i], list[i + 1] end
  end
  renewDue(q)
  refresh(q)
  return looks > 0
end

while at < #ARGV and looks > 0 do
  local q = queue(arg())
  if q and not q.gone and not cancelSome(q) then break end
  due, last, through = '', '', through + 1
end
return done({ through, due, last })
