-- extend: host, token, lease -> OK, lease end
local longest = 0
local function each(i)
  local host, lease = ARGV[i], num(ARGV[i + 2])
  local id, wrong = held(host, ARGV[i + 1])
  if not id then return { wrong } end
  if lease > longest then -- chg_until has to cover this lease as if it were new
    paused(lease)
    longest = lease
  end
  local ends = now + lease
  call('ZADD', BUSY, ends, id)
  prolong(host, id, ends)
  return { OK, ends }
end
