-- through records in the shard of a refused crawl's name that none of its documents is scheduled: name.
local name = arg()
if not crawlEnds.others('x', name) then
  call('ZREM', base .. ':ke', name)
  if whyOf(name) ~= EXPIRED then crawlEnds.seen('x', name, '0') end -- the caller of the stop asks again for the result
end
return done({})
