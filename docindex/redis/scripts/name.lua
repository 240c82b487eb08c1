-- name gives DOC_IDs to documents: DOC_ID, where the document is, and where the DOC_ID may be taken from ('': nowhere) each. It
-- answers for each '', or where the document is that has it.
local out = {}
while at < #ARGV do
  local id, where, from = arg(), arg(), arg()
  local has = call('HGET', base .. ':ids', id)
  if not has or has == where or has == from then
    call('HSET', base .. ':ids', id, where)
    has = ''
  end
  out[#out + 1] = has
end
return done(out)
