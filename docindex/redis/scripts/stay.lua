-- stay reserves a queue for one call, or ends that: place, queue, token, whether it begins, whether it gave something,
-- URLs in transit that the queue has at most. It returns how many the call may give; 0: the queue is not reserved.
place0 = num()
local q, token, begins, gave, limit = queue(arg()), arg(), arg() == '1', arg() == '1', num()
local can = 0
if q and begins and (q.y == token or when(q, CALLS) <= now) then
  can = max(0, limit - q.n[TRANSIT])
  if can > 0 then begin(q, token) end
elseif q and not begins and q.y == token then
  release(q)
  if gave then q.v[CALLS] = up elseif q.f <= now then q.r = now + 1000 end
end
if q then
  if not begins then leave(q, CALLS) end
  touch(q)
  refresh(q)
end
return done({ can })
