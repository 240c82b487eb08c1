-- explain: prefix, host, penalty -> OK, group, state, until, holder, now, due, next
local host, penalty = ARGV[2], num(ARGV[3])
local id = group_of(host)
if call('HEXISTS', KNOWN, host) == 0 and not adopt(host) then return { OK, id, 'unknown' } end
free(host, penalty)
free(id, penalty)
local lock = call('HGET', LOCK, host) or (call('ZSCORE', BUSY, host) and not call('HGET', GROUP .. host, 'host') and host)
if lock then
  return { OK, id, 'busy', num(call('ZSCORE', BUSY, lock)), call('HGET', GROUP .. lock, 'h') or '' }
end
local last, ends = nil, 0
for _, name in ipairs({ host, id }) do
  for _, by in ipairs(covering(name)) do
    local e = num(call('ZSCORE', BUSY, by))
    if e > ends then last, ends = by, e end
  end
end
if last then return { OK, id, 'waiting', ends, call('HGET', GROUP .. last, 'h') or '' } end
return { OK, id, 'idle', now, num(call('HGET', KNOWN, host)), math.max(next_of(host), next_of(id)) }
