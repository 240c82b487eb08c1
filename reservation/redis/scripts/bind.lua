-- bind: prefix, ttl, host, proposed group, host, proposed group ... -> OK, the group in force of each
local ends, groups = now + num(ARGV[2]), { OK }
for i = 3, #ARGV, 2 do
  local host, proposed = ARGV[i], ARGV[i + 1]
  if not call('GET', HOST .. host) then
    call('SET', HOST .. host, proposed)
    call('ZREM', BOUND, host)
  end
  if num(call('ZSCORE', BOUND, host)) < ends then
    call('ZADD', BOUND, ends, host)
    expire_at(HOST .. host, ends)
  end
  local group = group_of(host)
  if group ~= host then
    raise(group, next_of(host))
    for _, id in ipairs(covering(host)) do cover(id, group) end
    rehome(group)
    settle(group)
  end
  rehome(host)
  requeue(group)
  groups[#groups + 1] = group
end
return groups
