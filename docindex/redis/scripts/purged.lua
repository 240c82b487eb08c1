-- purged ends the purge of a refused crawl: name, whether this is the shard of that. It answers how many documents ended because of the
-- refusal since somebody was told.
local name, home = arg(), arg() == '1'
local no = numberOf(name)
if home and not othersEnd('x', name) then
  call('ZREM', base .. ':ke', name)
  if whyOf(name) ~= EXPIRED then seen('x', name, '0') end -- who asked for that is told by asking again
end
return done({ tonumber(no and call('HGET', crawlKey(no), UNTOLD) or 0) })
