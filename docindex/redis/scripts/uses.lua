-- uses tells which documents have DOC_IDs: document's queue, hash, DOC_ID each. It answers 1 for each that has it.
local out = {}
while at < #ARGV do
  local q, hash, id = named(arg()), arg(), arg()
  local doc = q and not q.gone and document(q, hash)
  out[#out + 1] = doc and doc[ID] == id and 1 or 0
end
return done(out)
