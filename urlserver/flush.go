package urlserver

import (
	"errors"
	"net/netip"

	"urlserver/internal/resolver"
	"urlserver/internal/robots"
	"urlserver/urlserver/engine"
)

// flush hands the engine's work to those who do it. None of them makes it wait.
func (d *Daemon) flush() {
	out := &d.engine.Out
	for _, id := range out.Drop { // first: what it had may go to others now
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
		d.asks <- out.Ask // never blocks: the engine asks one thing at a time
	}
	if out.Claims != nil {
		d.claims <- out.Claims // never blocks, as above
		out.Claims = nil
	}
	ends := d.endWithout(out.Journeys)
	if out.Outcomes.Len() > 0 {
		if d.outbox.put(&out.Outcomes, ends) {
			d.engine.Choke(true)
		}
	}
	if out.Returns.Len() > 0 {
		d.returns.put(&out.Returns, nil)
	}
	d.parts.Traces.Drop(out.Skipped)
	clear(out.Journeys)
	out.Journeys, out.Skipped = out.Journeys[:0], 0
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

// noteNameServers logs, once, that no name server can be used, or that one can again.
func (d *Daemon) noteNameServers(err error) {
	if errors.Is(err, resolver.ErrDown) == d.namesDown.Load() {
		return
	}
	h := d.parts.Resolver.Health() // what needs no server is answered meanwhile, too
	switch changed := d.namesDown.CompareAndSwap(!h.Down, h.Down); {
	case !changed:
	case h.Down:
		d.log.Warn().Strs("servers", h.Servers).Str("cause", h.Why).Msg("no name server can be used; names wait until one can (resolver.servers)")
	default:
		d.log.Info().Msg("name servers can be used again")
	}
}

// judge answers the engine's question about a robots.txt; the engine asks one at a time.
func (d *Daemon) judge(q *engine.Question) {
	d.work.Go(func() {
		allowed, work := q.Rules.AllowedAll(q.Targets)
		d.post(func(e *engine.Engine) { e.Judged(allowed, work) })
	})
}

// fetchRobots makes one request for a robots.txt; the engine bounds how many there
// are at once, and the client how long each takes.
func (d *Daemon) fetchRobots(f engine.Fetch) {
	client, policy, ctx := d.robots.Load(), d.policy.Load(), d.hard
	if f.By > 0 {
		ctx = robots.By(ctx, d.start.Add(f.By))
	}
	d.work.Go(func() {
		var resp robots.Response
		if err := d.parts.Resolver.Check(f.Addr); err != nil { // it may be this machine's own by now
			resp.Err = err
		} else {
			resp = client.Read(ctx, f.URL, f.Addr, *policy, f.Targets)
		}
		if resp.Status == 0 {
			d.log.Debug().Str("url", f.URL).Stringer("addr", f.Addr).AnErr("cause", resp.Err).Msg("robots.txt: no answer")
		}
		d.post(func(e *engine.Engine) { e.Fetched(f.ID, resp) })
	})
}
