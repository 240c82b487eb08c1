-- done: prefix, host, token, crawl, n -> OK, what is left for the host
local id, wrong = held(ARGV[2], ARGV[3])
if not id then return { wrong } end
return { OK, counted(ARGV[2], ARGV[4], -num(ARGV[5])) }
