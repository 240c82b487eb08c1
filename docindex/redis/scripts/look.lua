-- look returns the state of a host: name, most queues. It returns whether there is more to catch up with, and a list:
-- now, the delay of all queues ('': none is set), passive; of the host block, delay, last request under these, pause,
-- last call, gap, and how many documents each consumer has out; then of each queue crawl, key, its three counts, first
-- due time, block, rest, delay ('': none), limit, when either consumer was served last, what either has out, whether
-- it has several hosts, whether a call is serving it, until when its address puts it off, whether its links take turns, and how
-- many registered domains of its crawl have documents scheduled or in transit in this shard.
local more, h, most = catchUp(), host(arg()), num()
local function text(v) return v and string.format('%.0f', v) or '' end
local out = {
  text(now), general[1] or '', general[2] or '', text(h.b or 0), text(h.d or 0), text(h.t or 0), text(h.p), text(h.c), text(max(h.g, h.k or 0)),
  text(h.o[SLOTS]), text(h.o[CALLS]), text(h.o[LENT]),
}
for i = 1, min(#h.q, most) do
  local q = queue(h.q[i])
  if q and not q.gone then
    for _, v in ipairs({
      q.c, q.k, text(q.n[1]), text(q.n[2]), text(q.n[3]), text(q.f), text(q.b), text(q.r), text(q.d), text(q.l), text(q.v[SLOTS]),
      text(q.v[CALLS]), text(q.o[SLOTS] + q.o[LENT]), text(q.o[CALLS]), q.a and '1' or '', q.u > now and '1' or '', text(q.z or 0), q.i and '1' or '',
      text(call('HLEN', base .. ':m:' .. q.c)),
    }) do out[#out + 1] = v end
  end
end
return done({ more and 1 or 0, out })
