-- arrive: prefix, whether the caller has used the store before, the longest lease (for a Redis that knows none),
-- the highest token that the caller knows and the penalty -> OK, 1 if this Redis is another process than before
-- Another process (a fail-over, a restart) may lack the last writes of the one before. So no new reservation is given
-- while a lease may be in force, and not before the penalty of one that was lost has passed. Tokens continue well above
-- those that may have been given.
local run = call('INFO', 'server'):match('run_id:(%x+)')
local before = call('GET', P .. 'chg_run{chg}')
if before == run then return { OK, 0 } end
call('SET', P .. 'chg_run{chg}', run)
if not before and ARGV[2] == '0' then return { OK, 1 } end
local till = num(call('GET', P .. 'chg_until{chg}') or now + num(ARGV[3]))
local token = math.max(num(call('GET', TOKEN)), num(ARGV[4])) + 16777216
call('SET', TOKEN, string.format('%.0f', token))
if till > now then
  till = till + num(ARGV[5])
  call('SET', P .. 'chg_pause{chg}', till)
  expire_at(P .. 'chg_pause{chg}', till)
end
return { OK, 1 }
