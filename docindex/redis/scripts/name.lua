-- name gives DOC_IDs to documents: DOC_ID, where the document is, and where the DOC_ID may be taken from ('': nowhere) each. It
-- answers for each '', 1 where that was there already, or where the document is that has it. What was there already is written anew
-- with another number, so that who was about to take it away does not; it may have done so before the document is put.
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
