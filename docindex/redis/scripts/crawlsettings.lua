-- crawlsettings sets the settings of a crawl and counts the change: the field of the crawl, the settings ('': they are
-- removed), and how many crawls may have settings. It returns 1, or 0 if there is no room for one more crawl.
local key, field, text, most = base .. ':settings', arg(), arg(), num()
if text == '' then
  redis.call('HDEL', key, field) -- before the count, which Redis refuses without memory unless a script has written
elseif redis.call('HEXISTS', key, field) == 0 then
  if redis.call('HLEN', key) - redis.call('HEXISTS', key, 'version') >= most then return done({ 0 }) end
end
redis.call('HINCRBY', key, 'version', 1) -- before the settings: where it fails, they stay as they are
if text ~= '' then redis.call('HSET', key, field, text) end
return done({ 1 })
