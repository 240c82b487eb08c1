-- add: host, earliest, crawl, n, "host" or "documents" -> OK, whether it was new
local function each(i)
  local host, earliest, crawl, n = ARGV[i], math.max(now, num(ARGV[i + 1])), ARGV[i + 2], num(ARGV[i + 3])
  if call('SISMEMBER', ALIASES, host) == 1 then return { INVALID } end
  local due = call('HGET', KNOWN, host)
  if not due then
    call('HSET', KNOWN, host, earliest)
    rehome(host)
    counted(host, { [crawl] = n })
    return { OK, 1 }
  end
  if ARGV[i + 4] == 'documents' then counted(host, { [crawl] = n }) end
  if earliest < num(due) then
    call('HSET', KNOWN, host, earliest)
    rehome(host)
  end
  return { OK, 0 }
end
