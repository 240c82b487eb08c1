-- ended counts documents of refused crawls that the owner's slots have ended, whose outcomes come later: name, how many, whether these
-- are all that the slots had here, each.
while at < #ARGV do
  local name, n, all = arg(), num(), arg() == '1'
  if n > 0 then bump(openCrawl(name).by, UNTOLD, n) end
  if all then call('SREM', base .. ':j:' .. owner, name) end
end
return done({})
