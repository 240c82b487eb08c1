-- queues lists queues of a crawl behind a place: crawl, place, most. It answers place, queue, key and whether it is idle of each.
local crawl, behind, most, out = arg(), arg(), num(), {}
local list = call('ZRANGEBYSCORE', base .. ':c:' .. crawl, '(' .. behind, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
for i = 1, #list, 2 do
  local q = queue(list[i])
  if q then
    local n = #out
    local idle = q.n[1] + q.n[2] == 0 or q.b > now
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = list[i + 1], q.id, q.k, idle and 1 or 0
  end
end
return done({ #list == 2 * most and list[#list] or '', out })
