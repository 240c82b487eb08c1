-- release deletes entries of DOC_IDs: DOC_ID and the entry that the caller saw, of each. An entry that was rewritten
-- since stays.
while at < #ARGV do
  local id, had = arg(), arg()
  if call('HGET', base .. ':ids', id) == had then call('HDEL', base .. ':ids', id) end
end
return done({})
