-- hold: prefix, holder, "1" for its first report, ttl, then of each host: host, documents of DEFAULT, and of each other
-- crawl with documents: "/" and its ID, documents -> OK, 1 if the holder is known
-- Documents are counted by holder, so that the worker can subtract those of a holder that has died.
local holder, ends = ARGV[2], call('ZSCORE', HOLDERS, ARGV[2])
if ends and num(ends) <= now or not ends and ARGV[3] ~= '1' then return { OK, 0 } end
ends = now + num(ARGV[4])
call('ZADD', HOLDERS, ends, holder)
local apart = call('EXISTS', PARTS .. holder) == 1 -- whether it reports other crawls than DEFAULT

-- keep_default and keep_others store the reported documents of a host, and return those of the report before.
local function keep_default(host, n)
  local was = num(call('HGET', HELD .. holder, host))
  if n == 0 then
    call('HDEL', HELD .. holder, host)
  elseif n ~= was then
    call('HSET', HELD .. holder, host, n)
  end
  return was
end

local function keep_others(host, crawls)
  local was = apart and call('HGET', PARTS .. holder, host)
  if next(crawls) then
    call('HSET', PARTS .. holder, host, cmsgpack.pack(crawls))
    apart = true
  elseif was then
    call('HDEL', PARTS .. holder, host)
  end
  return was and cmsgpack.unpack(was) or {}
end

local function tell(host, n, crawls)
  local any, was = n > 0 or next(crawls), keep_others(host, crawls)
  was.DEFAULT, crawls.DEFAULT = keep_default(host, n), n
  if call('HEXISTS', KNOWN, host) == 0 then
    if not any then return end
    was = {}
    call('HSET', KNOWN, host, now)
    rehome(host)
  end
  for crawl, before in pairs(was) do crawls[crawl] = (crawls[crawl] or 0) - before end
  recount(host, crawls)
end

local i = 5
while i <= #ARGV do
  local host, n, crawls = ARGV[i], num(ARGV[i + 1]), {}
  i = i + 2
  while i <= #ARGV and ARGV[i]:sub(1, 1) == '/' do -- a host has no "/" in it
    local crawl = ARGV[i]:sub(2)
    crawls[crawl] = (crawls[crawl] or 0) + num(ARGV[i + 1])
    i = i + 2
  end
  if call('SISMEMBER', ALIASES, host) == 0 then guarded(host, tell, host, n, crawls) end
end
if apart then call('ZADD', TELLERS, ends, holder) end
return { OK, 1 }
