-- janitor: prefix, cursor, count, penalty -> OK, next cursor, repaired
-- Puts groups back that have something to do and stand in no queue.
local found = call('SCAN', ARGV[2], 'MATCH', GROUP:gsub('([%*%?%[%]\\])', '\\%1') .. '*', 'COUNT', ARGV[3])
local ready
local repaired = 0
for _, key in ipairs(found[2]) do
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
      if call('ZCARD', DUE .. id) == 0 and call('HEXISTS', KNOWN, id) == 0 then
        call('HSET', KNOWN, id, now)
        call('HSET', COUNT, id, f[1])
        call('HSET', HOME, id, id)
      end
      rehome(id)
      requeue(id)
      if call('ZSCORE', WAIT, id) then repaired = repaired + 1 end
    end
  end
end
if repaired > 0 then call('INCRBY', P .. 'chg_repaired{chg}', repaired) end
return { OK, found[1], repaired }
