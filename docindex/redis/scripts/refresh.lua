-- refresh computes again when queues that wait may be served: door, cursor. It returns the next cursor.
local door, cursor = arg(), arg()
local page = call('ZSCAN', base .. ':w' .. door, cursor, 'COUNT', SOME)
for i = 1, #page[2], 2 do
  local q = queue(page[2][i])
  if q then refresh(q) end
end
return done({ page[1] })
