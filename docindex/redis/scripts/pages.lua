-- pages counts the documents of a crawl with a limited number of them, for all daemons: "take", crawl, most of the
-- crawl and of a domain (0: any number), and the domain of each document ('': not limited) takes a place for each; it
-- returns for each 0, 1 if the crawl is full, or 2 if the domain is, and nothing if "count" has to come first. "free",
-- crawl and the domain of each gives places back. "count", crawl, documents, and pairs of domain and documents, says
-- what there is, unless it is counted. "forget", crawl: it is to be counted anew.
local what, key, out = arg(), base .. ':pages:' .. arg(), {}

local function bump(domain, by)
  call('HINCRBY', key, 'pages', by)
  if domain ~= '' then call('HINCRBY', key, '@' .. domain, by) end
end

local function counted() return call('HGET', key, 'pages') end

if what == 'forget' then
  call('DEL', key)
elseif what == 'count' then
  if not counted() then
    call('HSET', key, 'pages', arg())
    while at < #ARGV do
      local domain, n = arg(), arg()
      call('HSET', key, '@' .. domain, n)
    end
  end
elseif what == 'free' then
  while counted() and at < #ARGV do bump(arg(), -1) end
elseif counted() then
  local most, mostOfDomain = num(), num()
  while at < #ARGV do
    local domain = arg()
    if most > 0 and tonumber(counted()) >= most then
      out[#out + 1] = 1
    elseif domain ~= '' and tonumber(call('HGET', key, '@' .. domain) or 0) >= mostOfDomain then
      out[#out + 1] = 2
    else
      out[#out + 1] = 0
      bump(domain, 1)
    end
  end
end
return done(out)
