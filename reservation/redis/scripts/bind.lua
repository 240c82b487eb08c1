-- bind: prefix, ttl, host, proposed group, host, proposed group ... ->
-- OK, then for each the group in force and for how many ms the binding holds; below 0: for how many ms answers may hold
-- that other daemons had before the alias of the host changed
local ends, answer = now + num(ARGV[2]), { OK }
local function bind(host, proposed)
  if not call('GET', HOST .. host) then
    call('SET', HOST .. host, proposed)
    call('ZREM', BOUND, host)
  end
  local holds, moved = num(call('ZSCORE', BOUND, host)), num(call('ZSCORE', MOVED, host))
  local held = moved > now + 1 -- 1: a question holds nobody back
  -- The binding of a host that is held back is not extended: a host whose alias changes again and again would be held
  -- back for ever.
  local to = held and moved or ends
  if holds < to then
    holds = to
    call('ZADD', BOUND, to, host)
    expire_at(HOST .. host, to)
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
  return { group, held and now - moved or holds - now }
end
for i = 3, #ARGV, 2 do -- a host with a key of a wrong type is neither bound nor reserved
  local bound = guarded(ARGV[i], bind, ARGV[i], ARGV[i + 1]) or { ARGV[i + 1], 0 }
  answer[#answer + 1], answer[#answer + 2] = bound[1], string.format('%d', bound[2])
end
return answer
