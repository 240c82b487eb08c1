-- see answers whether ends of crawls are the owner's to tell of: 'x' or 'f', name, round each.
catchUp()
local out = {}
while at < #ARGV do out[#out + 1] = crawlEnds.see(arg(), arg(), arg()) and 1 or 0 end
return done(out)
