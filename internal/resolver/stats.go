package resolver

import (
	"errors"
	"sync/atomic"
	"time"
)

// Stats are counts since New, and the present state.
type Stats struct {
	// Hosts by result. Remembered counts results of Cached; the others are results of Resolve,
	// counted once for any number of callers.
	Remembered, Found, NoHost, Refused, BadName, Failed, Closed uint64
	// how many of Found are expired addresses, used because the servers failed
	Stale uint64

	Asked uint64        // names that servers were asked for, until the result
	Took  time.Duration // total time of these look-ups

	// Queries sent, including repeated ones and those over TCP, and the tries that they belong to
	// (A and AAAA are one try), by result. A try with one answer and one missing counts as both.
	Queries, Answers, Timeouts, Failures uint64
	Strays                               uint64 // datagrams that answered no query
	Cut                                  uint64 // truncated answers, fetched again over TCP

	Waiting int // names that a caller waits for
	Working int // names being looked up at servers
	Window  int // present limit of Working
	Entries int // cached names

	HostsFile error // why the changed hosts file could not be read; nil: no error
}

// counters are the counts of Stats.
type counters struct {
	remembered, found, noHost, refused, badName, failed, closed, stale atomic.Uint64
	queries, answers, timeouts, failures, strays, cut                  atomic.Uint64
	asked, took                                                        atomic.Uint64 // took in ns
}

// ended counts a host by the error of its look-up.
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

// Stats returns counts and state. Its fields are of about the same moment.
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
