-- delete: host, token, next, penalty -> OK
local function each(i)
  local host, token, ms = ARGV[i], ARGV[i + 1], moment(ARGV[i + 2], now)
  if call('HEXISTS', KNOWN, host) == 0 then return { UNKNOWN } end
  free(host, num(ARGV[i + 3]))
  local lock = call('HGET', LOCK, host) or (call('ZSCORE', BUSY, host) and not call('HGET', GROUP .. host, 'host') and host)
  if lock or token ~= '0' then
    local id, wrong = held(host, token)
    if not id then return { wrong } end
    unlock(id, ms)
  elseif ms > now then
    for _, name in ipairs({ host, group_of(host) }) do
      raise(name, ms)
      rehome(name)
      requeue(name)
      settle(name)
    end
  end
  forget(host)
  return { OK }
end
