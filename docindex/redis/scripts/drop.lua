-- drop removes a queue: its URLs are not counted and not handed out from now on. free deletes its documents. It
-- returns the number of URLs, and the queue.
local q = named(arg())
if not q or q.gone then return done({ 0, '' }) end
local n = q.n[1] + q.n[2] + q.n[3]
leave(q, SLOTS)
leave(q, CALLS)
release(q)
for state = 1, 3 do add(q.c, state, -q.n[state]) end
if q.n[1] + q.n[2] > 0 then add(q.c, 'a', -1) end
add(q.c, 'q', -1)
local name = nameOf(q.c, q.k)
call('HDEL', base .. ':names', name)
call('ZREM', base .. ':c:' .. q.c, q.id)
call('SREM', base .. ':set', q.id)
call('SADD', base .. ':gone', q.id)
later.sync(q)
if q.lc > 0 then
  add(q.c, 'l', -q.lc)
  call('ZREM', base .. ':d', q.id)
end
q.gone = true
touch(q)
local h = host(q.h)
for i, id in ipairs(h.q) do
  if id == q.id then table.remove(h.q, i) break end
end
touchHost(h)
return done({ n, q.id })
