-- out returns how many URLs of queues clients have: queue and host of each. -1: none of the queue, but some on the host that
-- were forgotten, maybe with it.
local out = {}
while at < #ARGV do
  local q, h = queue(arg()), host(arg())
  local n = q and q.o[CALLS] or 0
  out[#out + 1] = n == 0 and (h.e or 0) > 0 and -1 or n
end
return done(out)
