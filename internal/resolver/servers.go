package resolver

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	failuresToAvoid = 3           // consecutive failures
	firstAvoid      = time.Second // doubles with each further failure
	maxAvoid        = 30 * time.Second
	plainFor        = 5 * time.Minute // for how long a server that does not know EDNS is asked without it
)

// server is a name server and its state. servers.mu guards its fields.
type server struct {
	addr       netip.AddrPort
	lost       bool          // it answers no query at all
	lostAt     time.Duration // since when
	failures   int           // consecutive ones
	avoid      time.Duration // until then it is tried after the others
	plainUntil time.Duration // until then it is asked without EDNS
}

// servers distributes tries over name servers by their state. Times are since the resolver's start.
// Safe for concurrent use.
type servers struct {
	list []*server // the slice never changes

	mu     sync.Mutex // guards all below and the servers' fields except addr
	next   int        // number of the server to be tried first next time
	useful bool       // one server has given a usable answer since the start

	// Until useful is true: when the first try failed, the number of failed tries, and how the last
	// one failed.
	failedAt time.Duration
	tries    int
	why      string
}

func newServers(addrs []netip.AddrPort) *servers {
	s := &servers{}
	for _, a := range addrs {
		s.list = append(s.list, &server{addr: a})
	}
	return s
}

// order appends all servers to dst in the order in which to try them: the healthy ones in turn,
// then the failing ones, by when they may recover.
func (s *servers) order(dst []*server, now time.Duration) []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = (s.next + 1) % len(s.list)
	dst = append(dst, s.list[s.next:]...)
	dst = append(dst, s.list[:s.next]...)
	slices.SortStableFunc(dst, func(a, b *server) int {
		return cmp.Compare(a.avoidedAt(now), b.avoidedAt(now))
	})
	return dst
}

// avoidedAt returns the end of the avoidance, 0 if there is none.
func (s *server) avoidedAt(now time.Duration) time.Duration {
	if s.avoid <= now {
		return 0
	}
	return s.avoid
}

// down reports whether no server is usable, since when and why: none has given a usable answer
// since the start, or all that have are lost now.
func (s *servers) down() (since time.Duration, why string, down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.useful {
		return s.failedAt, s.why, s.tries > 0
	}
	for _, srv := range s.list {
		if !srv.lost {
			return 0, "", false
		}
		since = max(since, srv.lostAt)
	}
	return since, "they do not answer", true
}

// answered records a usable answer of srv.
func (s *servers) answered(srv *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	srv.failures, srv.avoid, srv.lost = 0, 0, false
	s.useful = true
}

// alive records an answer of srv, usable or not.
func (s *servers) alive(srv *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	srv.lost = false
}

// lose records that srv answers no query at all.
func (s *servers) lose(srv *server, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !srv.lost {
		srv.lost, srv.lostAt = true, now
	}
}

// failed records an attempt without a usable answer. dead says that nothing listens at the address,
// so that a second attempt is pointless.
func (s *servers) failed(srv *server, dead bool, err error, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tries++; s.tries == 1 {
		s.failedAt = now
	}
	s.why = err.Error()
	srv.failures++
	if dead {
		srv.failures = max(srv.failures, failuresToAvoid)
	}
	if over := srv.failures - failuresToAvoid; over >= 0 {
		srv.avoid = now + min(firstAvoid<<min(over, 10), maxAvoid)
	}
}

// edns reports whether queries to srv use EDNS.
func (s *servers) edns(srv *server, now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now >= srv.plainUntil
}

// plain records that srv answered a query without EDNS after it had failed the same query with
// EDNS.
func (s *servers) plain(srv *server, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	srv.plainUntil = now + plainFor
}
