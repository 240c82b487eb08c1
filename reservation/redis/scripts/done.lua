-- done: prefix, host, token, crawl, n -> OK, what is left for the host
local host, crawl, n = ARGV[2], ARGV[4], num(ARGV[5])
local id, wrong = held(host, ARGV[3])
if not id then return { wrong } end
n = n + counted(host, { [crawl] = 0 - n })
if n > 0 and crawl ~= 'DEFAULT' then counted(host, { DEFAULT = 0 - n }) end -- older daemons counted all as DEFAULT
return { OK, num(call('HGET', COUNT, host)) }
