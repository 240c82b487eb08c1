-- where returns the places of documents by their DOC_IDs; '' is unknown.
local out = {}
while at < #ARGV do out[#out + 1] = call('HGET', base .. ':ids', arg()) or '' end
return done(out)
