-- get returns a document: its queue, hash.
local more = catchUp()
local q, hash = named(arg()), arg()
local doc = q and not q.gone and document(q, hash)
return done(doc and describe(q, hash, doc) or {})
