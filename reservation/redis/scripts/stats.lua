-- stats: prefix -> OK, hosts, ready, busy, aliases, repaired
-- If more groups than this are ready, their hosts are not counted one by one.
local most = 10000
local ready, seen = 0, 0
local function look(ids)
  for _, id in ipairs(ids) do
    local n = redis.pcall('ZCOUNT', DUE .. id, '-inf', now)
    ready = ready + (type(n) == 'number' and n or 0)
    seen = seen + 1
  end
end
look(call('LRANGE', READY, 0, most - 1))
look(call('ZRANGEBYSCORE', WAIT, '-inf', now, 'LIMIT', 0, most))
ready = ready + call('LLEN', READY) + call('ZCOUNT', WAIT, '-inf', now) - seen
return { OK, call('HLEN', KNOWN), ready, call('ZCARD', BUSY), call('SCARD', ALIASES), num(call('GET', P .. 'chg_repaired{chg}')) }
