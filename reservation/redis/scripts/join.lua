-- join: prefix, most hosts of an alias, alias, hosts ... -> OK, the alias of each, or INVALID and the name
-- that clashes, or INVALID if the alias would have too many hosts
-- Adds hosts to an alias; a host in another alias stays there.
local alias, hosts, answer, joins = ARGV[3], {}, { OK }, false
for i = 4, #ARGV do hosts[#hosts + 1] = ARGV[i] end
local name = clash(alias, hosts)
if name then return { INVALID, name } end
local new, has = {}, {}
for _, host in ipairs(hosts) do
  local former = call('HGET', ALIAS, host)
  answer[#answer + 1] = former or alias
  if not former and not has[host] then
    new[#new + 1], has[host], joins = host, true, true
  end
end
if not joins then return answer end
local all = call('SMEMBERS', ALIASED .. alias)
for _, host in ipairs(new) do all[#all + 1] = host end
if #all > tonumber(ARGV[2]) then return { INVALID } end
set_alias(alias, all)
return answer
