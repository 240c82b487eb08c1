-- late schedules URLs again that serve gave to a call and that have not left since, as their address has gone to others: the
-- call's token, then place, queue, how many, and what serve returned of each. It leaves alone what has been taken again since.
local token = arg()
while at < #ARGV do
  place0 = num()
  local q, most = queue(arg()), num()
  for _ = 1, most do
    local taken, hash = string.match(arg(), '^(%d+):(.*)$')
    local doc = q and not q.gone and document(q, hash)
    if doc and doc[STATE] == TRANSIT and doc[DOOR] == CALLS and string.format('%.0f', doc[TAKEN]) == taken then finish(q, hash, doc, SCHEDULED) end
  end
  if q and q.y == token then
    release(q)
    leave(q, CALLS)
    touch(q)
    refresh(q)
  end
end
return done({})
