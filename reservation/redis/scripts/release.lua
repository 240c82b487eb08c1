for _, i in ipairs(rest) do
  local host, ms = ARGV[i], math.max(now, num(ARGV[i + 2]))
  local id, wrong = held(host, ARGV[i + 1])
  if id then
    unlock(id, ms)
    if num(call('HGET', COUNT, host)) <= 0 then forget(host) end
  else
    answers[(i - 3) / 3 + 2] = { wrong }
  end
end
return answers
