-- hold: prefix, holder, "1" for its first time, ttl, host, documents, host, documents ... -> OK, 1 if the holder is known
-- Documents are counted by holder, so that those of one that has died can be taken off again.
local holder, ends = ARGV[2], call('ZSCORE', HOLDERS, ARGV[2])
if ends and num(ends) <= now or not ends and ARGV[3] ~= '1' then return { OK, 0 } end
call('ZADD', HOLDERS, now + num(ARGV[4]), holder)
for i = 5, #ARGV, 2 do
  local host, n = ARGV[i], num(ARGV[i + 1])
  if call('SISMEMBER', ALIASES, host) == 0 then
    local was = num(call('HGET', HELD .. holder, host))
    if n > 0 then call('HSET', HELD .. holder, host, n) else call('HDEL', HELD .. holder, host) end
    if call('HEXISTS', KNOWN, host) == 0 then
      was = 0
      if n > 0 then
        call('HSET', KNOWN, host, now)
        rehome(host)
      end
    end
    held_less(host, was - n)
  end
end
return { OK, 1 }
