-- refuse refuses a crawl: name, kind of outcome, how many may be refused ('': this is not the shard of its name). It answers the kind that it
-- is refused with, or -1 where too many are.
local name, why, limit = arg(), num(), num()
local has = whyOf(name)
if has then return done({ has }) end
if limit and call('HLEN', base .. ':x') >= limit then return done({ -1 }) end
call('HSET', base .. ':x', name, why)
anyRefused, whys[name] = true, why
call('ZREM', base .. ':kf', name)
call('ZREM', base .. ':ke', name)
if limit then
  call('ZADD', base .. ':ke', 0, name) -- until it is purged
  crawlEnds.see('x', name, '0')
  openCrawl(name) -- so that it is listed
end
local no, others = numberOf(name), false
for _, who in ipairs(no and call('HKEYS', crawlKey(no) .. ':o') or {}) do
  if who ~= owner and call('ZSCORE', base .. ':a', who) then
    call('SADD', base .. ':j:' .. who, name)
    others = true
  end
end
if others then notify() end
return done({ why })
