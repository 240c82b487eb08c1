package resolver

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// failedFor is how long a failure is remembered, and a stale address is used before the servers
// are asked again.
const failedFor = 5 * time.Second

// lookup is the work on one name. The first track is of the preferred type.
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

// settled tells whether further answers cannot matter: the preferred type has an address that is
// allowed, or the name does not exist, or all is known.
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

// ask tries servers until l is settled or cfg.Attempts tries have failed.
func (w *worker) ask(l *lookup) {
	r := w.r
	w.order = r.servers.order(w.order[:0], r.now())
	for failures := 0; failures < r.cfg.Attempts && !l.settled(); {
		if r.alive.Err() != nil {
			l.err = ErrClosed
			return
		}
		l.server = w.order[failures%len(w.order)]
		era := r.era()
		any, err := w.try(l.server, l)
		r.judge(l.server, any, err, era)
		if err != nil && !l.settled() {
			l.err = err
			failures++
		}
	}
}

// judge learns from a try how its server does, and how much the servers can take.
func (r *Resolver) judge(s *server, any bool, err error, era uint64) {
	if any {
		r.servers.answered(s)
		r.counts.answers.Add(1)
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
	if !any {
		r.servers.failed(s, dead(err), r.now())
	}
	if !any && errors.Is(err, errTimeout) {
		r.narrow(era)
	}
}

// outcome is what a name came to.
type outcome struct {
	kind kind
	addr netip.Addr
	ttl  time.Duration // to be remembered so long
	err  error         // nil for addresses
}

// conclude sums l up. While the preferred type is not known the answer for the other does not
// count: a lost packet must not move a host to another address.
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
		return outcome{kind: kindRefused, ttl: clamp(ttl, cfg.MinTTL, cfg.MaxTTL), err: l.fail(ErrRefused, nil)}
	}
	ttl = clamp(ttl, min(failedFor, cfg.NegativeTTL), cfg.NegativeTTL)
	return outcome{kind: kindNoHost, ttl: ttl, err: l.fail(ErrNoHost, l.reason())}
}

// reason is why there is no address, where more can be said than that.
func (l *lookup) reason() error {
	for i := range l.tracks {
		if why := l.tracks[i].why; why != "" {
			return errors.New(why)
		}
	}
	return nil
}

// fail wraps kind with the host, the server asked last and, if any, the cause.
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
