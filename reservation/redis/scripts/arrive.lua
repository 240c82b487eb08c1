-- arrive: prefix, whether the caller has used the store before, the longest lease (for a Redis that knows none),
-- the highest token that the caller knows and the penalty -> OK, 1 if this Redis is another process than before
-- Another process (a fail-over, a restart) may lack the last writes of the one before. So no new reservation is given
-- while a lease may be in force, and not before the penalty of one that was lost has passed. Tokens continue well above
-- those that may have been given.
-- A Redis that nobody has used may have lost all, and the first caller may be one that has not used it before. So
-- chg_run also has the token before the first that this Redis gives: a caller that knows a lower one has lost leases.
local RUN, UNTIL, PAUSE = P .. 'chg_run{chg}', P .. 'chg_until{chg}', P .. 'chg_pause{chg}'
local run = call('INFO', 'server'):match('run_id:(%x+)')
local before, used, known = call('GET', RUN) or '', ARGV[2] == '1', num(ARGV[4])
local till = num(call('GET', UNTIL))
if before == '' and not used then
  first_token(P, now)
  call('SET', RUN, run .. ' ' .. call('GET', TOKEN))
  return { OK, 1 }
end
local first = before:match('^' .. run .. ' (%d+)$')
if before == run or first and not (used and known <= num(first)) then return { OK, 0 } end
if till == 0 or first then till = math.max(till, now + num(ARGV[3])) end
first_token(P, now)
call('SET', RUN, run)
call('SET', TOKEN, string.format('%.0f', math.max(num(call('GET', TOKEN)), known) + 16777216))
if till > now then
  till = till + num(ARGV[5])
  call('SET', PAUSE, till)
  expire_at(PAUSE, till)
end
return { OK, 1 }
