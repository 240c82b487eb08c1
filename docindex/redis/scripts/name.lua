-- name gives DOC_IDs to documents: DOC_ID, place of the document, and place from which the DOC_ID may be taken ('':
-- none) of each. It returns for each '', 1 if the DOC_ID was there already, or the place of the document that has it.
-- An entry that was there already is rewritten with another number, so that a concurrent release does not delete it; a
-- release may have come before the document is put.
local out = {}
while at < #ARGV do
  local id, where, from = arg(), arg(), arg()
  local has = call('HGET', base .. ':ids', id)
  local place = has and string.gsub(has, '^(%d+)%.%d+ ', '%1 ')
  local answer = ''
  if not has then
    call('HSET', base .. ':ids', id, where)
  elseif place == where or place == from then
    local again = string.format('.%d ', call('HINCRBY', base .. ':g', 'again', 1))
    call('HSET', base .. ':ids', id, (string.gsub(where, ' ', again, 1)))
    answer = 1
  else
    answer = place
  end
  out[#out + 1] = answer
end
return done(out)
