-- try: host, lease, holder, penalty -> OK, group, token, lease end
local longest, pausing = 0, false
local function each(i)
  local host, lease, holder, penalty = ARGV[i], num(ARGV[i + 1]), ARGV[i + 2], num(ARGV[i + 3])
  local due = call('HGET', KNOWN, host)
  if not due and not adopt(host) then return { UNKNOWN } end
  if lease > longest then
    pausing = paused(lease)
    longest = lease
  end
  if pausing then return { NOT_NOW, 'paused' } end
  local id = group_of(host)
  free(host, penalty)
  free(id, penalty)
  due = num(call('HGET', KNOWN, host))
  if locked(host) or locked(id) or math.max(due, next_of(host), next_of(id)) > now then return { NOT_NOW } end
  if call('HGET', HOME, host) ~= id then rehome(host) end
  if call('ZREM', WAIT, id) == 0 then call('LREM', READY, 0, id) end
  local _, group, token, ends = unpack(reserve(host, id, lease, holder))
  return { OK, group, token, ends }
end
