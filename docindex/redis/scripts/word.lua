-- word tells what others have left for the owner's slots: what it was told of and has forgotten. It answers names of crawls that are refused,
-- and documents that are forgotten: QUEUE:HASH, DOC_ID, zero byte, URL.
local forgotten = base .. ':z:' .. owner
while at < #ARGV do call('SREM', forgotten, arg()) end
return done({ call('SRANDMEMBER', base .. ':j:' .. owner, SOME), call('SRANDMEMBER', forgotten, SOME) })
