-- return schedules documents again that the slots have not sent, unless another daemon has them by now: place, queue,
-- hash, URL ('': any) of each. It returns 1, or the URL that the document has instead.
local function backOne()
  place0 = num()
  local q, hash, url = named(arg()), arg(), arg()
  local doc = q and not q.gone and document(q, hash)
  if not doc then return 1 end
  if url ~= '' and doc[URL] ~= url then return doc[URL] end
  if doc[STATE] == TRANSIT and doc[DOOR] ~= CALLS and (doc[OWNER] == owner or doc[OWNER] == '') then finish(q, hash, doc, SCHEDULED) end
  return 1
end

local answer = {}
while at < #ARGV do answer[#answer + 1] = backOne() end
return done(answer)
