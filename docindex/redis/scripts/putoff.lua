-- putoff keeps queues from calls for a while: place, queue and ms of each.
while at < #ARGV do
  place0 = num()
  local q, wait = queue(arg()), num()
  if q then
    q.z = now + wait
    leave(q, CALLS)
    touch(q)
    place(q, CALLS)
  end
end
return done({})
