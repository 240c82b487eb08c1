-- settings returns settings: "general", or "hosts", "preset" or "queues" with a cursor. For "general" it returns
-- delay and passive; else the next cursor, and of each crawl and key ('' and the host for "hosts"), delay, end of the
-- block, and limit. '' means that a value is not set.
local what, cursor = arg(), arg()
local out = {}

local function one(a, b, s)
  local function text(v) return v and string.format('%.0f', v) or '' end
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = a, b, text(s.d), (s.b or 0) > now and text(s.b) or '', (s.l or 0) > 0 and text(s.l) or ''
end

if what == 'general' then return done({ general[1] or '', general[2] or '' }) end
local page
if what == 'hosts' then
  page = call('SSCAN', base .. ':ordered', cursor, 'COUNT', 1000)
  for _, name in ipairs(page[2]) do
    local h = host(name)
    if h.d or (h.b or 0) > now then
      one('', name, h)
    else -- the host had only a block, which has ended
      call('SREM', base .. ':ordered', name)
      h.b, h.t = nil, nil
      touchHost(h)
    end
  end
elseif what == 'preset' then
  page = call('HSCAN', base .. ':preset', cursor, 'COUNT', 1000)
  for i = 1, #page[2], 2 do
    local size, rest = string.match(page[2][i], '^(%d+):(.*)$')
    local s = broken.unpack(base .. ':preset', page[2][i + 1])
    if s then one(string.sub(rest, 1, tonumber(size)), string.sub(rest, tonumber(size) + 1), s) end
  end
else
  page = call('SSCAN', base .. ':set', cursor, 'COUNT', 1000)
  for _, id in ipairs(page[2]) do
    local q = queue(id)
    if q and not q.gone then one(q.c, q.k, q) end
  end
end
return done({ page[1], out })
