-- unname takes DOC_IDs away: DOC_ID, and what was kept for it when nobody had it, each. What was given again since stays.
while at < #ARGV do
  local id, had = arg(), arg()
  if call('HGET', base .. ':ids', id) == had then call('HDEL', base .. ':ids', id) end
end
return done({})
