-- due returns hash and URL of the first due documents of a queue: queue, most.
local q, most, out = queue(arg()), num(), {}
for _, hash in ipairs(q and dueOf(q, most) or {}) do
  local doc = document(q, hash)
  if doc then out[#out + 1], out[#out + 2] = hash, doc[URL] else broken.lost(q) end
end
if q then refresh(q) end
return done(out)
