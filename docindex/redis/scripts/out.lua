-- out returns how many URLs of queues clients have, those on the host that were forgotten with them: queue and host of
-- each.
local out = {}
while at < #ARGV do
  local q, h = queue(arg()), host(arg())
  out[#out + 1] = (q and q.o[CALLS] or 0) + (h.e or 0)
end
return done(out)
