-- ending lists crawls that may have to be ended or reported: index ('ke': by expiry, 'kf': by the time since when
-- nothing is open here), latest time, most. It returns name and time of each.
catchUp()
return done(call('ZRANGEBYSCORE', base .. ':' .. arg(), '-inf', arg(), 'WITHSCORES', 'LIMIT', 0, arg()))
