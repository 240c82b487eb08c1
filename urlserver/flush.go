package urlserver

import (
	"errors"
	"net/netip"
	"time"

	"urlserver/internal/resolver"
	"urlserver/internal/robots"
	"urlserver/urlserver/engine"
)

// flush passes the engine's output to the goroutines that carry it out. It does not block.
func (d *Daemon) flush() {
	out := &d.engine.Out
	for _, id := range out.Drop { // first: their documents may go to other spiders now
		if s := d.sessions[id]; s != nil {
			s.giveUp(d.engine.WhyDropped(id))
		}
	}
	for _, id := range out.Dirty {
		if s := d.sessions[id]; s != nil {
			s.flush(d.engine)
		}
	}
	for _, name := range out.Lookups {
		d.lookUp(name)
	}
	for _, f := range out.Fetches {
		d.fetchRobots(f)
	}
	if out.Question != nil {
		d.judge(out.Question)
		out.Question = nil
	}
	if out.Ask != nil {
		d.asks <- out.Ask // never blocks: the engine has one request at a time
	}
	if out.Leases != nil {
		d.leaseBatches <- out.Leases // never blocks, as above
		out.Leases = nil
	}
	ends := d.endWithout(out.Traces)
	if out.Outcomes.Len() > 0 {
		d.parts.CrawlLog.Add(&out.Outcomes)
		if d.putOutcomes(&out.Outcomes, ends) {
			d.engine.SetBackpressure(true)
		}
	}
	if out.Returns.Len() > 0 {
		d.returns.put(&out.Returns, nil)
	}
	if out.Pauses.Len() > 0 {
		d.pauses.put(&out.Pauses, nil)
	}
	d.notes.put(out)
	if out.Sitemaps.Len() > 0 {
		d.putSitemaps(&out.Sitemaps)
	}
	d.parts.Traces.Drop(out.Skipped)
	clear(out.Traces)
	out.Traces, out.Skipped = out.Traces[:0], 0
	clear(out.Lookups)
	clear(out.Fetches)
	out.Dirty, out.Drop, out.Lookups, out.Fetches = out.Dirty[:0], out.Drop[:0], out.Lookups[:0], out.Fetches[:0]
	out.Ask = nil
}

func (d *Daemon) lookUp(name string) {
	d.parts.Resolver.Resolve(name, func(addr netip.Addr, err error) {
		d.noteNameServers(err)
		d.post(func(e *engine.Engine) { e.Resolved(name, addr, err) })
	})
}

// noteNameServers logs each change between "no name server can be used" and "one can be used".
func (d *Daemon) noteNameServers(err error) {
	if errors.Is(err, resolver.ErrDown) == d.namesDown.Load() {
		return
	}
	h := d.parts.Resolver.Health() // err may be nil for a name that needs no server
	switch changed := d.namesDown.CompareAndSwap(!h.Down, h.Down); {
	case !changed:
	case h.Down:
		d.log.Warn().Strs("servers", h.Servers).Str("cause",
			h.Why).Msg("no name server can be used; names wait until one can (resolver.servers)")
	default:
		d.log.Info().Msg("name servers can be used again")
	}
}

// judge matches URLs against a robots.txt that takes long. The engine asks one question at a time.
func (d *Daemon) judge(q *engine.Question) {
	d.work.Go(func() {
		allowed, work := q.Rules.AllowedAll(q.Targets)
		d.post(func(e *engine.Engine) { e.Judged(allowed, work) })
	})
}

// fetchRobots makes a request for a robots.txt. The engine bounds the number of concurrent
// requests, the client the duration of each.
func (d *Daemon) fetchRobots(f engine.Fetch) {
	client, policy := d.robots.Load(), d.policy.Load()
	sending := robots.Sending{Sent: func() { d.post(func(e *engine.Engine) { e.FetchSent(f.ID) }) }}
	if f.By > 0 {
		sending.By = d.start.Add(f.By)
	}
	d.work.Go(func() {
		var resp robots.Response
		if err := d.parts.Resolver.Check(f.Addr); err != nil { // the machine may have got this address meanwhile
			resp.Err = err
		} else if time.Since(d.start) > f.Start { // this process stood still
			resp.Err = robots.ErrLate
		} else {
			resp = client.Read(robots.WithSending(d.hard, sending), f.URL, f.Addr, *policy, f.Targets)
		}
		if resp.Status == 0 {
			d.log.Debug().Str("url", f.URL).Stringer("addr", f.Addr).AnErr("cause",
				resp.Err).Msg("robots.txt: no answer")
		}
		d.post(func(e *engine.Engine) { e.Fetched(f.ID, resp) })
	})
}
