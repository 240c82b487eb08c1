-- bind: prefix, ttl, host, proposed group, host, proposed group ... -> OK, the group in force of each
local ends, groups = now + num(ARGV[2]), { OK }
local function bind(host, proposed)
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
  return group
end
for i = 3, #ARGV, 2 do -- a host with a key of a wrong type is neither bound nor reserved
  groups[#groups + 1] = guarded(ARGV[i], bind, ARGV[i], ARGV[i + 1]) or ARGV[i + 1]
end
return groups
