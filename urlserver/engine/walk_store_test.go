package engine

import "time"

// walkStore is a reservation that others use, too.
type walkStore struct {
	leases map[string]walkLeaseOf
	bound  map[string]walkBound
	token  uint64
}

type walkBound struct {
	group string
	until time.Duration
}

type walkLeaseOf struct {
	token uint64 // 0: others'
	ends  time.Duration
	next  time.Duration
}

// claims does what the engine asks for some time later, and has the answer come later still.
func (w *walk) claims(c *LeaseBatch) {
	w.after(w.some(100*time.Millisecond), func() {
		lost := w.bad(10) // all that comes after it, too
		c.ReportsLost = w.bad(5)
		w.release(c)
		for i := range c.Extends {
			if lost = lost || w.bad(1); !lost {
				w.extend(&c.Extends[i])
			}
		}
		for i := range c.Binds {
			if lost = lost || w.bad(1); !lost {
				w.bind(&c.Binds[i])
			}
		}
		for i := range c.Acquires {
			if lost = lost || w.bad(1); !lost {
				w.try(&c.Acquires[i])
			}
		}
		answer := func() { w.e.LeasesAnswered(c) }
		if w.bad(5) {
			w.after(w.some(walkLease/2), answer)
			return
		}
		w.after(w.some(50*time.Millisecond), answer)
	})
}

func (w *walk) release(c *LeaseBatch) {
	for _, r := range c.Releases {
		if l := w.store.leases[r.Host]; l.token == r.Token && l.ends > w.now {
			w.store.leases[r.Host] = walkLeaseOf{next: w.now + r.Next}
		}
	}
}

func (w *walk) extend(c *LeaseRequest) {
	l := w.store.leases[c.Host]
	if c.Answer = Denied; l.token == c.Token && l.ends > w.now && !w.bad(5) {
		c.Answer, l.ends = Granted, w.now+walkLease
	}
	w.store.leases[c.Host] = l
}

func (w *walk) bind(b *Bind) {
	if b.Alias != "" {
		b.Group = b.Alias
		return
	}
	bound, until := w.store.bound[b.Host], w.now
	if !b.Ask {
		until += b.TTL
	}
	if bound.until <= w.now || w.bad(10) {
		bound.group = b.Addr.String()
		if w.bad(20) {
			bound.group = walkAddr(w.rng.IntN(walkAddrs)).String()
		}
	}
	if bound.until = max(bound.until, until); w.bad(10) { // another daemon extends it
		bound.until = w.now + b.TTL
	}
	w.store.bound[b.Host] = bound
	b.Group, b.Left = bound.group, bound.until-w.now
	if w.bad(5) { // its alias has changed, and changed back
		b.Left = -w.some(2 * walkLease)
	}
}

func (w *walk) try(c *LeaseRequest) {
	l := w.store.leases[c.Host]
	switch c.Answer = Denied; {
	case l.ends > w.now || l.next > w.now:
		return
	case w.bad(5):
		c.Unknown = true
		return
	case w.bad(20): // others have it
		w.store.leases[c.Host] = walkLeaseOf{ends: w.now + w.some(2*walkLease)}
		return
	}
	w.store.token++
	c.Answer, c.Token = Granted, w.store.token
	w.store.leases[c.Host] = walkLeaseOf{token: c.Token, ends: w.now + walkLease}
}
