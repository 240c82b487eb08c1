-- pages counts the documents of a crawl with a limited number of them, for all daemons: what to do, the crawl, and
-- "take", a name, how long places last (ms), most of the crawl and of a domain (0: any number), and the domain of each
-- document ('': not limited): takes a place for each. It returns '' and for each 0, or 1 if the crawl is full, 2 if the
-- domain is, 3 if places that are not settled yet may become free; or 'e' and the epoch if "count" has to come first.
-- "settle", the name, how many documents were not stored, and the domains of all documents, those that were not
-- stored first: settles the places.
-- "count", the epoch, documents, whether domains are counted ('1'), and pairs of domain and documents: sets the
-- counts, unless they are set or the epoch is another.
-- "forget": deletes the counts, so that "count" has to set them anew.
local what, crawl = arg(), arg()
local key, places, out = base .. ':pages:' .. crawl, base .. ':places:' .. crawl, {}

local function epoch() return call('HGET', key, 'epoch') or '' end

-- forget deletes the counts. It keeps a new epoch for an hour, because a daemon may still bring an older count.
local function forget()
  local later = string.format('%.0f', (tonumber(epoch()) or micros) + 1)
  call('DEL', key)
  call('HSET', key, 'epoch', later)
  call('PEXPIRE', key, 3600000)
end

local numbers = {} -- of fields that were read or changed

local function get(field)
  if not numbers[field] then numbers[field] = { n = tonumber(call('HGET', key, field) or 0) } end
  return numbers[field].n
end

local function change(field, by)
  local n = get(field) + by
  numbers[field] = { n = n, changed = true }
end

local function keepNumbers()
  for field, one in pairs(numbers) do
    if one.changed and one.n == 0 and field ~= 'pages' then
      call('HDEL', key, field)
    elseif one.changed then
      call('HSET', key, field, string.format('%.0f', one.n))
    end
  end
end

-- bump counts documents, of which some places are not settled, for the crawl and a domain.
local function bump(domain, pages, open)
  change('pages', pages)
  change('open', open)
  if domain ~= '' and get('domains') == 1 then
    change('@' .. domain, pages)
    change('+' .. domain, open)
  end
end

-- limit returns why a document finds no place, or 0.
local function limit(domain, most, mostOfDomain)
  local of = domain ~= '' and mostOfDomain > 0
  if most > 0 and get('pages') - get('open') >= most then return 1 end
  if of and get('@' .. domain) - get('+' .. domain) >= mostOfDomain then return 2 end
  if most > 0 and get('pages') >= most or of and get('@' .. domain) >= mostOfDomain then return 3 end
  return 0
end

local function counted() return call('HGET', key, 'pages') end

local function take()
  local name, till, most, mostOfDomain = arg(), now + num(), num(), num()
  if call('ZREMRANGEBYSCORE', places, '-inf', now) > 0 then forget() end -- nobody knows which of their documents are stored
  local domains = call('HGET', key, 'domains') -- none: a program from before places were settled has counted
  if counted() and (not domains or mostOfDomain > 0 and domains ~= '1') then forget() end
  local known = counted()
  if not known and call('ZCARD', places) == 0 then return { 'e' .. epoch() } end
  out[1] = ''
  local some = false
  while at < #ARGV do
    local domain = arg()
    local why = known and limit(domain, most, mostOfDomain) or 3
    if why == 0 then
      bump(domain, 1, 1)
      some = true
    end
    out[#out + 1] = why
  end
  if some then call('ZADD', places, till, name) end
  keepNumbers()
  return out
end

local function settle()
  local name, free = arg(), num()
  if call('ZREM', places, name) == 0 then return forget() end -- the places have ended
  if not counted() then return end
  while at < #ARGV do
    bump(arg(), free > 0 and -1 or 0, -1)
    free = free - 1
  end
  keepNumbers()
end

local function begin()
  local of, pages, domains = arg(), arg(), arg()
  if counted() or of ~= epoch() then return end
  call('HSET', key, 'pages', pages, 'domains', domains)
  call('PERSIST', key)
  while at < #ARGV do
    local domain, n = arg(), arg()
    call('HSET', key, '@' .. domain, n)
  end
end

if what == 'take' then
  out = take()
elseif what == 'settle' then
  settle()
elseif what == 'count' then
  begin()
else
  forget()
end
return done(out)
