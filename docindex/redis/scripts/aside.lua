-- aside sets a domain of a crawl aside, or ends that: whether it begins, crawl, domain, and queues of it that stand with all
-- others.
local begins, crawl, domain = arg() == '1', arg(), arg()
call(begins and 'SADD' or 'SREM', base .. ':i', nameOf(crawl, domain))
call('HSET', base .. ':g', 'aside', call('SCARD', base .. ':i'))
while at < #ARGV do
  local q = queue(arg())
  if q and not q.gone then
    aside.join(q, domain)
    aside.move(q, SLOTS)
    aside.move(q, CALLS)
  end
end
return done({})
