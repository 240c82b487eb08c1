-- through says that nothing of a refused crawl is scheduled any more, to the shard of its name: name.
local name = arg()
if not crawlEnds.others('x', name) then
  call('ZREM', base .. ':ke', name)
  if whyOf(name) ~= EXPIRED then crawlEnds.seen('x', name, '0') end -- who asked for that is told by asking again
end
return done({})
