-- members lists queues that have scheduled documents of a crawl: name, cursor. It returns the next cursor, and queues.
local no, cursor = numberOf(arg()), arg()
if not no then return done({ '0', {} }) end
local page = call('HSCAN', crawlKey(no) .. ':q', cursor, 'COUNT', SOME)
local out = {}
for i = 1, #page[2], 2 do out[#out + 1] = page[2][i] end
return done({ page[1], out })
