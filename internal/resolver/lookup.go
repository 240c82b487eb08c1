package resolver

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

const (
	failedFor = time.Second      // how long a failure is cached: callers try again by themselves
	briefly   = 5 * time.Second  // how long an absence is cached that comes without a SOA record
	staleFor  = 30 * time.Second // how long an expired address is used before the servers are asked again
)

// lookup is the look-up of one name. The first track is of the preferred type.
type lookup struct {
	name   string
	nets   networks
	tracks []track
	server *server // the last one that was tried
	err    error   // why the last try failed
}

func (r *Resolver) newLookup(name string) *lookup {
	l := &lookup{name: name, nets: r.nets, tracks: make([]track, 0, 2)}
	if r.nets.v4 {
		l.tracks = append(l.tracks, newTrack(name, dns.TypeA))
	}
	if r.nets.v6 {
		l.tracks = append(l.tracks, newTrack(name, dns.TypeAAAA))
	}
	return l
}

// settled reports whether further answers cannot change the result: there is an allowed address of
// the preferred type, or the name does not exist, or everything is known.
func (l *lookup) settled() bool {
	first := &l.tracks[0]
	switch first.state {
	case open:
		return false
	case gone:
		return true
	case found:
		if best, _ := l.nets.choose(first.addrs); best.IsValid() {
			return true
		}
	}
	return l.tracks[len(l.tracks)-1].state != open
}

// ask tries servers until l is settled or cfg.Attempts tries have failed. It does not ask a server
// again that has answered that it cannot tell. If other names are queued, a try that times out ends
// the look-up: its callers try again.
func (w *worker) ask(l *lookup) {
	r := w.r
	w.order = r.servers.order(w.order[:0], r.now())
	for failures := 0; failures < r.cfg.Attempts && len(w.order) > 0 && !l.settled(); {
		if r.alive.Err() != nil {
			l.err = ErrClosed
			return
		}
		l.server = w.order[0]
		era := r.era()
		h, err := w.try(l.server, l)
		r.judge(l.server, h, err, era)
		if err == nil || l.settled() {
			continue
		}
		l.err = err
		failures++
		if w.order = w.order[1:]; h == silence {
			w.order = append(w.order, l.server)
		}
		if h == silence && errors.Is(err, errTimeout) && r.crowded() {
			return
		}
	}
}

// judge updates the state of a server and the window after a try.
func (r *Resolver) judge(s *server, h heard, err error, era uint64) {
	switch h {
	case useful:
		r.servers.answered(s)
		r.counts.answers.Add(1)
		r.widen()
	case useless:
		r.servers.alive(s)
		r.widen()
	}
	switch {
	case err == nil:
		return
	case errors.Is(err, errTimeout):
		r.counts.timeouts.Add(1)
	default:
		r.counts.failures.Add(1)
	}
	if h != useful {
		r.servers.failed(s, dead(err), fmt.Errorf("%s: %w", s.addr, err), r.now())
	}
	switch {
	case h != silence:
	case errors.Is(err, errTimeout):
		r.doubt(s, era)
	case unreachable(err):
		r.servers.lose(s, r.now())
	}
}

// outcome is the result of a look-up.
type outcome struct {
	kind kind
	addr netip.Addr
	ttl  time.Duration // how long it may be cached
	err  error         // nil for addresses
}

// conclude returns the result of l. If the answer for the preferred type is missing, the answer for
// the other type does not count: a lost packet must not change a host's address.
func (l *lookup) conclude(cfg *Config) outcome {
	var refused bool
	ttl := time.Duration(1<<63 - 1)
	for i := range l.tracks {
		t := &l.tracks[i]
		if t.state == open {
			return outcome{kind: kindFailed, ttl: failedFor, err: l.fail(ErrServers, l.err)}
		}
		ttl = min(ttl, t.ttl)
		best, none := l.nets.choose(t.addrs)
		if best.IsValid() {
			return outcome{kind: kindAddr, addr: best, ttl: clamp(t.ttl, cfg.MinTTL, cfg.MaxTTL)}
		}
		refused = refused || none
		if t.state == gone {
			break
		}
	}
	if refused {
		return outcome{kind: kindRefused, ttl: clamp(ttl, cfg.MinTTL, cfg.MaxTTL),
			err: l.fail(ErrRefused, nil)}
	}
	ttl = clamp(ttl, min(briefly, cfg.NegativeTTL), cfg.NegativeTTL)
	return outcome{kind: kindNoHost, ttl: ttl, err: l.fail(ErrNoHost, l.reason())}
}

// reason returns more about why there is no address, or nil.
func (l *lookup) reason() error {
	for i := range l.tracks {
		if why := l.tracks[i].why; why != "" {
			return errors.New(why)
		}
	}
	return nil
}

// fail wraps kind with the host, the server asked last and the cause, if there is one.
func (l *lookup) fail(kind, cause error) error {
	switch {
	case l.server == nil:
		return fmt.Errorf("host %q: %w", l.name, kind)
	case cause == nil:
		return fmt.Errorf("host %q: %w (server %s)", l.name, kind, l.server.addr)
	}
	return fmt.Errorf("host %q: %w (server %s: %w)", l.name, kind, l.server.addr, cause)
}

func clamp(d, low, high time.Duration) time.Duration { return min(max(d, low), high) }
