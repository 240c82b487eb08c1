-- alias: prefix, alias, hosts ... -> OK, or INVALID and the name that clashes
local alias, hosts = ARGV[2], {}
for i = 3, #ARGV do hosts[#hosts + 1] = ARGV[i] end
local name = clash(alias, hosts)
if name then return { INVALID, name } end
set_alias(alias, hosts)
return { OK }
