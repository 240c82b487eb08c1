-- uses returns 1 for each document that has a DOC_ID: queue, hash, DOC_ID of each.
local out = {}
while at < #ARGV do
  local q, hash, id = named(arg()), arg(), arg()
  local doc = q and not q.gone and document(q, hash)
  out[#out + 1] = doc and (doc[ID] == id or owners.key(q, doc) == id) and 1 or 0
end
return done(out)
