-- inbox returns the owner's notifications, after it has deleted those in its arguments, which are handled: names of
-- refused crawls, and deleted documents as QUEUE:HASH, DOC_ID, zero byte, URL.
local forgotten = base .. ':z:' .. owner
while at < #ARGV do call('SREM', forgotten, arg()) end
return done({ call('SRANDMEMBER', base .. ':j:' .. owner, SOME), call('SRANDMEMBER', forgotten, SOME) })
