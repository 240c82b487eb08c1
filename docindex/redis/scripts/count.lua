-- count counts: "all", "crawl" or "queue", crawl, key. It returns whether there is more to catch up with, and pairs
-- of name and count.
local more, what, crawl, key = catchUp(), arg(), arg(), arg()
more = later.catchUp() or more
local out = {}
if what == 'queue' then
  local q = find(nameOf(crawl, key))
  if q then later.sync(q) end
  if q then out = { 'l', q.lc, '1', q.n[1], '2', q.n[2], '3', q.n[3], 'q', 1, 'a', q.n[1] + q.n[2] > 0 and 1 or 0 } end
end
local answer = done(out)
if what ~= 'queue' then answer[1] = call('HGETALL', base .. ':n' .. (what == 'crawl' and ':' .. crawl or '')) end
answer[1] = { more and 1 or 0, answer[1] }
return answer
