-- set sets something: "delay" for all queues, "active", or "queue" with crawl, key and "d", "b" or "l"; then the value. A queue that
-- is not there has it when it comes. It answers 1, or 0 where too many wait for that.
local what = arg()
if what == 'delay' then
  call('HSET', base .. ':g', 'delay', arg())
elseif what == 'active' then
  if arg() == '1' then call('HDEL', base .. ':g', 'passive') else call('HSET', base .. ':g', 'passive', 1) end
else
  local name, field, value = nameOf(arg(), arg()), arg(), num()
  local q = find(name)
  if q then
    q[field] = value
    call('SADD', base .. ':set', q.id)
    touch(q)
    refresh(q)
  else
    local was = call('HGET', base .. ':preset', name)
    if not was and call('HLEN', base .. ':preset') >= 65536 then return done({ 0 }) end
    local s = was and cmsgpack.unpack(was) or {}
    s[field] = value
    call('HSET', base .. ':preset', name, cmsgpack.pack(s))
  end
end
return done({ 1 })
