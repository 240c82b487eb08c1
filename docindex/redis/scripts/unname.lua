-- unname takes DOC_IDs away: DOC_ID, where its document is, each.
while at < #ARGV do
  local id, where = arg(), arg()
  if call('HGET', base .. ':ids', id) == where then call('HDEL', base .. ':ids', id) end
end
return done({})
