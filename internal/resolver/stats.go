package resolver

import (
	"errors"
	"sync/atomic"
	"time"
)

// Stats counts since New, and says how things are now.
type Stats struct {
	// Hosts by how they ended. Remembered are answers of Cached; the rest are answers of Resolve,
	// counted once however many waited.
	Remembered, Found, NoHost, Refused, BadName, Failed, Closed uint64
	// of Found: old addresses, because the servers failed
	Stale uint64

	Asked uint64        // names that servers were asked for, until they were known or given up
	Took  time.Duration // how long that took, all together

	// Queries sent, also again and over TCP, and the tries they belong to (A and AAAA are one)
	// by result; a try that got one answer and missed another counts in both.
	Queries, Answers, Timeouts, Failures uint64
	Strays                               uint64 // datagrams that answered nothing that was asked
	Cut                                  uint64 // answers that had to be fetched over TCP

	Waiting int // names that somebody waits for
	Working int // names being asked of servers
	Window  int // how many of those there may be now
	Entries int // remembered names

	HostsFile error // why the changed hosts file could not be read; nil: all is well
}

// counters is the counting part of Stats.
type counters struct {
	remembered, found, noHost, refused, badName, failed, closed, stale atomic.Uint64
	queries, answers, timeouts, failures, strays, cut                  atomic.Uint64
	asked, took                                                        atomic.Uint64 // took: ns
}

// ended counts a host by the error it ended with.
func (c *counters) ended(err error) {
	switch {
	case err == nil:
		c.found.Add(1)
	case errors.Is(err, ErrNoHost):
		c.noHost.Add(1)
	case errors.Is(err, ErrRefused):
		c.refused.Add(1)
	case errors.Is(err, ErrBadName):
		c.badName.Add(1)
	case errors.Is(err, ErrClosed):
		c.closed.Add(1)
	default:
		c.failed.Add(1)
	}
}

// Stats may be called at any time; the figures belong to about the same moment.
func (r *Resolver) Stats() Stats {
	c := &r.counts
	s := Stats{
		Remembered: c.remembered.Load(),
		Found:      c.found.Load(),
		NoHost:     c.noHost.Load(),
		Refused:    c.refused.Load(),
		BadName:    c.badName.Load(),
		Failed:     c.failed.Load(),
		Closed:     c.closed.Load(),
		Stale:      c.stale.Load(),
		Asked:      c.asked.Load(),
		Took:       time.Duration(c.took.Load()),
		Queries:    c.queries.Load(),
		Answers:    c.answers.Load(),
		Timeouts:   c.timeouts.Load(),
		Failures:   c.failures.Load(),
		Strays:     c.strays.Load(),
		Cut:        c.cut.Load(),
		Entries:    r.cache.len(),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Waiting, s.Working, s.Window = len(r.flights), r.workers, r.window.limit
	s.HostsFile = r.hostErr
	return s
}
