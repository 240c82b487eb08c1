-- refresh looks again at queues that wait: door, cursor. It answers the cursor to go on with.
local door, cursor = arg(), arg()
local page = call('ZSCAN', base .. ':w' .. door, cursor, 'COUNT', SOME)
for i = 1, #page[2], 2 do
  local q = queue(page[2][i])
  if q then refresh(q) end
end
return done({ page[1] })
