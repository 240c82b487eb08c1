-- set changes a setting: "delay" (of all queues), "active", "queue" with crawl, key and a field, or "host" with its
-- name and a field; then the value. Fields: "d" delay, "b" blocked until, "l" limit (queues only). A setting of a
-- queue that does not exist is kept in preset until the queue is created. It returns 1, or 0 if preset is full or
-- too many hosts have settings.
local what = arg()
if what == 'delay' then
  call('HSET', base .. ':g', 'delay', arg())
elseif what == 'active' then
  if arg() == '1' then call('HDEL', base .. ':g', 'passive') else call('HSET', base .. ':g', 'passive', 1) end
elseif what == 'host' then
  local h, field, value = host(arg()), arg(), num()
  if not h.t then
    if call('SCARD', base .. ':ordered') >= 65536 then return done({ 0 }) end
    h.t = 0
    for _, id in ipairs(h.q) do
      local q = queue(id)
      if q then h.t = max(h.t, q.v[SLOTS], q.v[CALLS]) end
    end
  end
  h[field] = value
  if (h.b or 0) <= now then h.b = nil end
  if h.d == 0 then h.d = nil end
  if h.b or h.d then
    call('SADD', base .. ':ordered', h.name)
  else
    h.t = nil
    call('SREM', base .. ':ordered', h.name)
  end
  touchHost(h)
  refreshHost(h)
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
    local s = broken.unpack(base .. ':preset', was) or {}
    s[field] = value
    call('HSET', base .. ':preset', name, cmsgpack.pack(s))
  end
end
return done({ 1 })
