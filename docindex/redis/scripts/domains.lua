-- domains tells of a crawl's registered domains that have documents scheduled or in transit here: how many there are, and
-- their names, or some of many. With names it tells of each whether it is one of them.
local crawl, MANY = arg(), 256
local key = base .. ':m:' .. crawl
if at < #ARGV then
  local out = {}
  while at < #ARGV do out[#out + 1] = call('HEXISTS', key, arg()) end
  return done(out)
end
local n = call('HLEN', key)
return done({ n, n <= MANY and call('HKEYS', key) or call('HRANDFIELD', key, MANY) })
