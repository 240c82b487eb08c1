-- find returns the document of a URL: its queue, the two hashes that likeliest takes, URL.
local more = catchUp()
local q, hash, other, url = named(arg()), arg(), arg(), arg()
if not q or q.gone then return done({}) end
local doc, at = owners.likeliest(q, url, hash, other)
return done(doc and describe(q, at, doc) or {})
