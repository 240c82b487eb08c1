-- aside sets a domain of a crawl aside for a time, or ends that: whether it begins, crawl, domain, and queues of the
-- domain that are in the ring of all.
local begins, crawl, domain = arg() == '1', arg(), arg()
local label = nameOf(crawl, domain)
if begins then
  call('ZADD', base .. ':i', now + aside.LEASE, label)
  call('HSET', base .. ':g', 'aside', now + aside.LEASE)
else
  call('ZADD', base .. ':i', 'XX', 0, label)
end
while at < #ARGV do
  local q = queue(arg())
  if q and not q.gone then
    aside.join(q, domain)
    aside.move(q, SLOTS)
    aside.move(q, CALLS)
  end
end
return done({})
