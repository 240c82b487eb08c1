-- out returns how many URLs of queues clients have.
local out = {}
while at < #ARGV do
  local q = queue(arg())
  out[#out + 1] = q and q.o[CALLS] or 0
end
return done(out)
