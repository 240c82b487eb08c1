-- stay has a queue be served by one call, or ends that: place, queue, token, whether it begins, whether it gave something.
-- It answers whether the call has it.
place0 = num()
local q, token, begins, gave = queue(arg()), arg(), arg() == '1', arg() == '1'
local has = 0
if q and begins and (q.y == token or when(q, CALLS) <= now) then
  begin(q, token)
  has = 1
elseif q and not begins and q.y == token then
  release(q)
  if gave then q.v[CALLS] = up elseif q.f <= now then q.r = now + 1000 end
end
if q then
  if not begins then leave(q, CALLS) end
  touch(q)
  refresh(q)
end
return done({ has })
