-- advance: prefix, ms
local now = redis.call('INCRBY', ARGV[1] .. 'test_clock{chg}', ARGV[2])
local expiry = ARGV[1] .. 'test_expiry{chg}'
for _, key in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', now)) do
  redis.call('DEL', key)
  redis.call('ZREM', expiry, key)
end
return now
