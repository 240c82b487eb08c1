-- janitor: prefix, cursor, count, penalty -> OK, next cursor, repaired, keys of a wrong type ...
-- Puts groups that have work to do and are in no queue back into one. With the first cursor it deletes the records of
-- keys whose type is no longer wrong.
local found = call('SCAN', ARGV[2], 'MATCH', GROUP:gsub('([%*%?%[%]\\])', '\\%1') .. '*', 'COUNT', ARGV[3])
local ready
local repaired = 0
local function see(key)
  local id = key:sub(#GROUP + 1)
  local f = call('HMGET', key, 'c', 't')
  if num(f[1]) > 0 and not call('ZSCORE', WAIT, id) and not locked(id) then
    if not ready then
      ready = {}
      for _, r in ipairs(call('LRANGE', READY, 0, -1)) do ready[r] = true end
    end
    if f[2] then -- busy by its hash, but no lease would ever end
      unlock(id, now + num(ARGV[4]))
      repaired = repaired + 1
    elseif not ready[id] then
      adopt(id)
      rehome(id)
      requeue(id)
      if call('ZSCORE', WAIT, id) then repaired = repaired + 1 end
    end
  end
end

if ARGV[2] == '0' then
  local broken = call('HGETALL', BROKE)
  for i = 1, #broken, 2 do
    if not wrong_key(broken[i + 1]) then
      local id, c = broken[i + 1], 0
      local hosts = call('ZRANGE', DUE .. id, 0, -1)
      if not hosts[1] and call('HGET', HOME, id) == id then hosts[1] = id end
      call('HDEL', BROKE, broken[i])
      for _, host in ipairs(hosts) do c = c + num(call('HGET', COUNT, host)) end
      if c > 0 then call('HSET', GROUP .. id, 'c', c) end
      for _, host in ipairs(hosts) do guarded(host, rehome, host) end
    end
  end
end
for _, key in ipairs(found[2]) do guarded(key:sub(#GROUP + 1), see, key) end
if repaired > 0 then call('INCRBY', P .. 'chg_repaired{chg}', repaired) end
local answer = { OK, found[1], repaired }
if found[1] == '0' then
  for _, key in ipairs(call('HKEYS', BROKE)) do answer[#answer + 1] = key end
end
return answer
