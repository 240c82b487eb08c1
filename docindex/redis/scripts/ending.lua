-- ending lists crawls that may have to be ended or told of: which index ('ke': by when they expire, 'kf': by since when nothing is open here),
-- until when, most. It answers name and time of each.
catchUp()
return done(call('ZRANGEBYSCORE', base .. ':' .. arg(), '-inf', arg(), 'WITHSCORES', 'LIMIT', 0, arg()))
