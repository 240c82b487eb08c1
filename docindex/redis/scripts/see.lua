-- see returns whether the caller is the daemon that reports each of these ends of crawls: 'x' or 'f', name, round.
catchUp()
local out = {}
while at < #ARGV do out[#out + 1] = crawlEnds.see(arg(), arg(), arg()) and 1 or 0 end
return done(out)
