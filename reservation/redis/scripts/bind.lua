-- bind: prefix, ttl, host, proposed group, host, proposed group ... ->
-- OK, then for each the group in force and for how many ms the binding holds; below 0: for how many ms answers may hold
-- that other daemons had before an alias changed
local ends, answer = now + num(ARGV[2]), { OK }

-- answer_is stores the group that daemons go by until the binding ends.
local function answer_is(host, bound, group)
  if group == bound then call('HDEL', ANSWERED, host) else call('HSET', ANSWERED, host, group) end
end

local function hold(host)
  call('ZADD', BOUND, ends, host)
  expire_at(HOST .. host, ends)
end

-- others returns until when other daemons may go by an answer that is not the group in force of a bound name; 0: none do.
local function others(name, bound, group)
  if (call('HGET', ANSWERED, name) or bound) == group then return 0 end
  return num(call('ZSCORE', BOUND, name))
end

local function bind(host, proposed)
  local bound, alias, via = call('GET', HOST .. host), call('HGET', ALIAS, host), nil
  local new = not bound
  bound = bound or proposed
  if not alias and bound ~= host then
    alias, via = call('HGET', ALIAS, bound), call('GET', HOST .. bound)
  end
  local group = alias or bound
  if new then
    call('SET', HOST .. host, bound)
    hold(host)
    answer_is(host, bound, group)
  end
  local until_ms = new and 0 or others(host, bound, group)
  if via then until_ms = math.max(until_ms, others(bound, via, group_of(bound))) end
  local held, holds = until_ms > now + 1, num(call('ZSCORE', BOUND, host)) -- 1: a binding for 1 ms, which only asks, holds nobody back
  -- The binding of a host that is held back is not extended: a host whose alias changes again and again would be held
  -- back for ever.
  if not held and holds < ends then
    hold(host)
    holds = ends
  end
  if until_ms > 0 and not held then answer_is(host, bound, group) end
  if group ~= host then
    raise(group, next_of(host))
    for _, id in ipairs(covering(host)) do cover(id, group) end
    rehome(group)
    settle(group)
  end
  rehome(host)
  requeue(group)
  return { group, held and now - until_ms or holds - now }
end
for i = 3, #ARGV, 2 do -- a host with a key of a wrong type is neither bound nor reserved
  local bound = guarded(ARGV[i], bind, ARGV[i], ARGV[i + 1]) or { ARGV[i + 1], 0 }
  answer[#answer + 1], answer[#answer + 2] = bound[1], string.format('%d', bound[2])
end
return answer
