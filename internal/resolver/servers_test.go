package resolver

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/internal/testkit/ports"
)

// orderText returns the order of the servers, named by port.
func orderText(s *servers, now time.Duration) string {
	var b strings.Builder
	for _, srv := range s.order(nil, now) {
		b.WriteByte('a' + byte(srv.addr.Port()-1))
	}
	return b.String()
}

func someServers(n int) *servers {
	var addrs []netip.AddrPort
	for i := range n {
		addrs = append(addrs, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(i+1)))
	}
	return newServers(addrs)
}

func TestServersTakeTurns(t *testing.T) {
	s := someServers(3)
	for i, want := range []string{"bca", "cab", "abc", "bca"} {
		if got := orderText(s, 0); got != want {
			t.Errorf("order %d: %s, want %s", i, got, want)
		}
	}
}

func TestFailingServerIsLast(t *testing.T) {
	s := someServers(3)
	b := s.list[1]
	now := time.Minute
	for range failuresToAvoid - 1 {
		s.failed(b, false, errTimeout, now)
	}
	if got := orderText(s, now); got != "bca" {
		t.Errorf("after two failures: %s, want bca", got)
	}
	s.failed(b, false, errTimeout, now)
	for _, want := range []string{"cab", "acb", "cab"} { // first in turn: c, a, b
		if got := orderText(s, now); got != want {
			t.Errorf("after three failures: %s, want %s", got, want)
		}
	}
	now += firstAvoid
	if got := orderText(s, now+0); got != "cab" {
		t.Errorf("after the avoidance: %s, want cab", got)
	}
	s.failed(b, false, errTimeout, now)
	if got, want := b.avoid-now, 2*firstAvoid; got != want {
		t.Errorf("avoided for %v after the next failure, want %v", got, want)
	}
	for range 100 {
		s.failed(b, false, errTimeout, now)
	}
	if got := b.avoid - now; got != maxAvoid {
		t.Errorf("avoided for %v after many failures, want %v", got, maxAvoid)
	}
	s.answered(b)
	s.failed(b, false, errTimeout, now)
	if b.avoid != 0 {
		t.Error("avoided after one failure that followed an answer")
	}
}

func TestFailingServersByRecovery(t *testing.T) {
	s := someServers(3)
	s.failed(s.list[0], true, errTimeout, 2*time.Second)
	s.failed(s.list[1], true, errTimeout, 3*time.Second)
	s.failed(s.list[2], true, errTimeout, time.Second)
	for range 3 {
		if got := orderText(s, 0); got != "cab" {
			t.Errorf("order %s, want cab: who recovers first is tried first", got)
		}
	}
}

func TestPlainServer(t *testing.T) {
	s := someServers(1)
	srv := s.list[0]
	if !s.edns(srv, 0) {
		t.Error("no EDNS at first")
	}
	s.plain(srv, time.Second)
	if s.edns(srv, time.Second+plainFor-1) || !s.edns(srv, time.Second+plainFor) {
		t.Errorf("without EDNS other than for %v", plainFor)
	}
}

// One of two servers is dead. Each name is answered, and soon the dead server is not asked first
// any more.
func TestDeadServer(t *testing.T) {
	var dead atomic.Int64
	for _, tt := range []struct {
		name string
		bad  func(t *testing.T) string
	}{
		{name: "silent", bad: func(t *testing.T) string {
			return serve(t, func(q *request) { dead.Add(1) }).addr
		}},
		{name: "nobody there", bad: func(t *testing.T) string {
			return fmt.Sprintf("127.0.0.1:%d", ports.Free(t, 1))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dead.Store(0)
			good := serve(t, func(q *request) { q.answer(q.truth()) })
			cfg := hasty(good)
			cfg.Servers = append(cfg.Servers, tt.bad(t))
			r := start(t, cfg)
			for i := range 100 {
				wantAddr(t, r, strings.Repeat("a", i%50+1)+strings.Repeat(".b", i/50)+".example", truth)
			}
			if n := dead.Load(); n > 40 {
				t.Errorf("the silent server was asked %d times in 100 lookups", n)
			}
		})
	}
}

func TestAllServersDead(t *testing.T) {
	s := serve(t, func(q *request) {})
	for _, timeout := range []time.Duration{1, 20 * time.Millisecond} { // the first has passed before a socket is open
		cfg := patient(s, s, s)
		cfg.Timeout, cfg.Attempts = timeout, 4
		r := start(t, cfg)
		_, err := lookUp(t, r, "a.example")
		if !errors.Is(err, ErrServers) || !strings.Contains(err.Error(), s.addr) ||
			!strings.Contains(err.Error(), "no answer in time") {
			t.Errorf("timeout %v: error %v, want ErrServers that tells server and cause", timeout, err)
		}
		if st := r.Stats(); st.Timeouts != 4 || st.Failures != 0 || st.Failed != 1 ||
			st.Window != firstWindow {
			t.Errorf("timeout %v: timeouts %d, failures %d, failed %d, window %d; want 4, 0, 1, %d",
				timeout, st.Timeouts, st.Failures, st.Failed, st.Window, firstWindow)
		}
	}
}

// Tries go round the servers. A server that answers that it cannot tell is asked once, a silent one
// again.
func TestTriesGoRound(t *testing.T) {
	for _, tt := range []struct {
		name   string
		handle func(q *request)
		want   int64
	}{
		{name: "SERVFAIL", handle: func(q *request) { q.answer(q.code(2)) }, want: 1},
		{name: "silence", handle: func(q *request) {}, want: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var servers []*fakeServer
			var names [3]atomic.Int64
			for i := range 3 {
				servers = append(servers, serve(t, func(q *request) {
					if q.name() == "a.example." { // not a probe
						names[i].Add(1)
						tt.handle(q)
					}
				}))
			}
			cfg := patient(servers...)
			cfg.Attempts, cfg.Timeout = 6, time.Second
			lookUp(t, start(t, cfg), "a.example")
			for i := range names {
				if n := names[i].Load(); n != tt.want {
					t.Errorf("server %d was asked %d times, want %d", i, n, tt.want)
				}
			}
		})
	}
}

func TestWindow(t *testing.T) {
	w := newWindow(40)
	if w.limit != firstWindow {
		t.Errorf("starts at %d, want %d", w.limit, firstWindow)
	}
	for range 100 {
		w.answered()
	}
	if w.limit != 40 {
		t.Errorf("%d after many answers, want the bound of 40", w.limit)
	}
	era := w.era
	for range 30 {
		w.silent(era)
	}
	if w.limit != 20 {
		t.Errorf("%d after a burst of timeouts, want 20", w.limit)
	}
	w.answered()
	w.silent(w.era)
	if w.limit != firstWindow {
		t.Errorf("%d after a timeout of a later try, want %d", w.limit, firstWindow)
	}
	for range 10 {
		w.silent(w.era)
	}
	if w.limit != firstWindow {
		t.Errorf("%d after many, want %d", w.limit, firstWindow)
	}
	if small := newWindow(3); small.limit != 3 {
		t.Errorf("starts at %d with a bound of 3", small.limit)
	}
}
