-- paused returns the hosts that are left alone for the longest time, and for how many ms each: how many at most.
local answer, most = {}, num()
local found = call('ZREVRANGEBYSCORE', base .. ':paused', 'inf', '(' .. string.format('%d', now), 'WITHSCORES', 'LIMIT', 0, most)
for i = 1, #found, 2 do answer[i], answer[i + 1] = found[i], tonumber(found[i + 1]) - now end
return done(answer)
