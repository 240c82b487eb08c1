-- condemn ends what is scheduled of a refused crawl: its name, how many documents are looked at, how many of the first queue's are
-- passed over, queues. It answers how many queues are through, and how many of the next one's documents to pass over.
local name, looks, from = arg(), num(), num()
local no, why = numberOf(name), whyOf(name)
local through = 0

-- condemnSome answers how many documents of a queue were passed over; false: it is through.
local function condemnSome(q, skip)
  local list = call('ZRANGE', order(q), skip, skip + looks - 1)
  looks = looks - #list
  for _, m in ipairs(list) do
    local hash = hashOf(m)
    local doc = document(q, hash)
    if doc[CRAWL] == no then condemn(q, hash, doc, why) else skip = skip + 1 end
  end
  renewDue(q)
  refresh(q)
  return looks == 0 and skip
end

while no and why and at < #ARGV and looks > 0 do
  local q = queue(arg())
  from = q and not q.gone and condemnSome(q, from)
  if from then break end
  from, through = 0, through + 1
end
return done({ through, from })
