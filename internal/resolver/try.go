package resolver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

const (
	maxDatagram = 4096 // more than EDNS offers, for servers that ignore it
	maxStrays   = 200  // datagrams that answer no query before a socket is replaced, because an attacker may guess
)

// heard is the result of a try.
type heard uint8

const (
	silence heard = iota // nothing
	useless              // only unusable answers: SERVFAIL, REFUSED, garbage
	useful               // a usable answer
)

var (
	errTimeout = errors.New("no answer in time")
	errStrays  = errors.New("too many answers to other questions")
)

// worker looks up names, one after the other.
type worker struct {
	r     *Resolver
	rng   *rand.ChaCha8
	port  port
	asked []asked
	order []*server
	in    [maxDatagram]byte
}

// asked is a question of a try that waits for its answer.
type asked struct {
	track *track
	query query
	done  bool
}

// try sends all open questions of l to s at once, and processes the answers until no answer that
// matters is missing. The error is the first unusable answer, or errTimeout if answers are missing.
func (w *worker) try(s *server, l *lookup) (h heard, err error) {
	if err := w.port.use(w.r, s); err != nil {
		return silence, readError(err)
	}
	if err := w.sendAll(s, l); err != nil {
		w.port.drop(w.r)
		return silence, err
	}
	var first error
	for strays := 0; w.waiting() && !l.settled(); {
		n, err := w.port.conn.Read(w.in[:])
		if err != nil {
			w.port.drop(w.r)
			return h, firstErr(first, readError(err))
		}
		a := w.match(w.in[:n])
		if a == nil {
			w.r.counts.strays.Add(1)
			if strays++; strays > maxStrays {
				w.port.drop(w.r)
				return h, errStrays
			}
			continue
		}
		h = max(h, useless)
		if err := w.take(s, a, w.in[:n]); err != nil {
			first = firstErr(first, err)
			continue
		}
		if a.done { // else it was asked again, without EDNS
			h = useful
		}
	}
	return h, first
}

// sendAll sends a query for each open track.
func (w *worker) sendAll(s *server, l *lookup) error {
	w.asked = w.asked[:0]
	edns := w.r.servers.edns(s, w.r.now())
	for i := range l.tracks {
		if l.tracks[i].state == open {
			w.asked = append(w.asked, asked{track: &l.tracks[i]})
		}
	}
	for i := range w.asked {
		if err := w.send(&w.asked[i], edns); err != nil {
			return err
		}
	}
	return nil
}

// send sends a's question in a new query, and starts its timeout.
func (w *worker) send(a *asked, edns bool) (err error) {
	a.query, err = newQuery(a.track.name, a.track.qtype, edns, w.rng)
	if err != nil {
		return err
	}
	w.r.counts.queries.Add(1)
	w.port.conn.SetReadDeadline(time.Now().Add(w.r.cfg.Timeout))
	_, err = w.port.conn.Write(a.query.wire)
	return err
}

// take processes raw, an answer to a. It asks again over TCP if raw is truncated, and without EDNS
// if EDNS is the problem.
func (w *worker) take(s *server, a *asked, raw []byte) (err error) {
	a.done = true
	if cut(raw) {
		w.r.counts.cut.Add(1)
		if raw, err = w.overTCP(s, a); err != nil {
			return err
		}
	}
	var m dns.Msg
	if err := m.Unpack(raw); err != nil {
		return fmt.Errorf("its answer does not parse: %w", err)
	}
	if refusesEDNS(m.Rcode) && a.query.edns {
		a.done = false
		return w.send(a, false)
	}
	if err := a.track.apply(&m); err != nil {
		return err
	}
	if !a.query.edns {
		w.r.servers.plain(s, w.r.now())
	}
	return nil
}

// overTCP sends a's question over TCP with another ID. It restarts the timeouts of the other
// questions.
func (w *worker) overTCP(s *server, a *asked) ([]byte, error) {
	q, err := newQuery(a.track.name, a.track.qtype, a.query.edns, w.rng)
	if err != nil {
		return nil, err
	}
	w.r.counts.queries.Add(1)
	raw, err := w.r.overTCP(s, q)
	w.port.conn.SetReadDeadline(time.Now().Add(w.r.cfg.Timeout))
	return raw, err
}

// match returns the question that raw answers, or nil.
func (w *worker) match(raw []byte) *asked {
	for i := range w.asked {
		if a := &w.asked[i]; !a.done && a.query.answeredBy(raw) {
			return a
		}
	}
	return nil
}

func (w *worker) waiting() bool {
	for i := range w.asked {
		if !w.asked[i].done {
			return true
		}
	}
	return false
}

func readError(err error) error {
	if timedOut(err) {
		return errTimeout
	}
	return err
}

// dead reports whether err means that nothing listens at the address.
func dead(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// unreachable reports whether err, which is not a timeout, comes from the network: nothing listens,
// there is no route, or no socket is available. The name is not the cause.
func unreachable(err error) bool {
	_, ok := errors.AsType[*net.OpError](err)
	return ok
}

// firstErr returns the first error that is not nil.
func firstErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
