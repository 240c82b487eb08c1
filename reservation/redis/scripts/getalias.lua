-- getalias: prefix, name as given, name as a host -> OK, alias, hosts ...
local alias = ARGV[2]
if call('SISMEMBER', ALIASES, alias) == 0 then alias = call('HGET', ALIAS, ARGV[3]) end
if not alias then return { UNKNOWN } end
local answer = call('SMEMBERS', ALIASED .. alias)
table.sort(answer)
table.insert(answer, 1, alias)
table.insert(answer, 1, OK)
return answer
