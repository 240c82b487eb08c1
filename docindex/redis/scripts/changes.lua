-- changes returns what has changed in the pending counts of crawls: the run_id of the Redis that answered the caller
-- last ('': none), and the version that it answered. It returns the run_id, the version and whether the rest is
-- complete; number, name ('': the crawl is gone), expiry and its place of each changed crawl; and number, level
-- (priority and domain) and pending documents of each changed level.
local run, had = arg(), num() or -1
local version = tonumber(general[4] or 0)
local is = string.match(call('INFO', 'server'), 'run_id:(%x+)')
local till = tonumber(general[3] or 0)
if till < now + 1800000 then -- a Redis whose memory is full has all read anew each time
  local list = { 'watched', now + 3600000 }
  if till <= now then
    version = version + 1
    for _, one in ipairs({ 'changes', version, 'unlisted', version }) do list[#list + 1] = one end
    call('UNLINK', base .. ':kc')
  end
  redis.pcall('HSET', base .. ':g', unpack(list))
end
local unlisted = tonumber(call('HGET', base .. ':g', 'unlisted') or 0)
if run ~= is or had < unlisted or had > version then return done({ is, version, 0, {}, {} }) end

local crawls, levels, known = {}, {}, {}
for _, one in ipairs(call('ZRANGEBYSCORE', base .. ':kc', '(' .. had, '+inf')) do
  local no, level = string.match(one, '^(%d+) (.*)$')
  if not known[no] then
    known[no] = true
    local c, n = call('HMGET', crawlKey(no), 'name', 'till', 'said'), #crawls
    crawls[n + 1], crawls[n + 2], crawls[n + 3], crawls[n + 4] = no, c[1] or '', c[2] or '0', c[3] or '0'
  end
  if level ~= '' then
    local n = #levels
    levels[n + 1], levels[n + 2], levels[n + 3] = no, level, call('HGET', crawlKey(no) .. ':d', level) or '0'
  end
end
return done({ is, version, 1, crawls, levels })
