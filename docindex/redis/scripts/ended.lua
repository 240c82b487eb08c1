-- ended counts documents of refused crawls that the owner's slots have ended, whose outcomes come later: name, how
-- many, and whether the slots had no others here, of each crawl.
while at < #ARGV do
  local name, n, all = arg(), num(), arg() == '1'
  if n > 0 then bump(openCrawl(name).by, UNTOLD, n) end
  if all then call('SREM', base .. ':j:' .. owner, name) end
end
return done({})
