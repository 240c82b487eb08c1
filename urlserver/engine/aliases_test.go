package engine

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/protocol"
	"urlserver/reservation"
	"urlserver/reservation/memory"
)

// TestHostJoinsALeasedAlias: a daemon has the lease of an alias. Another one has bound a host to the host's
// address, which then joins the alias. The daemons find it at different addresses. They never ask it at once.
func TestHostJoinsALeasedAlias(t *testing.T) {
	w, of, other := newAliasWorld(t)
	w.give(other, "moves.test", 400)
	w.run(lease, of, other)
	w.alias("other.test", "moves.test")
	w.give(of, "moves.test", 400)
	w.asked = [2]int{}
	if w.run((bindLeases+1)*lease, of, other); w.asked == [2]int{} {
		t.Error("no daemon asks the host when it has joined the alias")
	}
}

// TestHostLeavesALeasedAlias: a daemon that asks a host in the group of an alias stands still, and loses the
// lease, when the host leaves the alias. Another daemon has documents of the host, too. They never ask it at
// once, and it is asked when all daemons have left the alias.
func TestHostLeavesALeasedAlias(t *testing.T) {
	w, of, other := newAliasWorld(t)
	w.give(other, "moves.test", 5)
	w.run(lease, of, other)
	w.alias("other.test", "moves.test")
	w.give(of, "moves.test", 400)
	w.run((bindLeases+1)*lease, of, other)
	w.alias("other.test")
	w.now += 2 * lease
	w.give(other, "moves.test", 400)
	w.run(bindLeases*lease, of, other)
	w.asked = [2]int{}
	if w.run(2*lease, of, other); w.asked == [2]int{} {
		t.Error("no daemon asks the host when it has left the alias")
	}
}

// TestHostLeavesABusyAlias: a host leaves an alias whose lease is extended for long, as another host of the
// alias has many documents. It is asked again all the same.
func TestHostLeavesABusyAlias(t *testing.T) {
	for _, at := range []int{0, 1} {
		w, of, other := newAliasWorld(t)
		w.give(of, "other.test", 4000)
		w.alias("other.test", "moves.test")
		w.run(lease, of, other)
		w.give([]*sharing{other, of}[at], "moves.test", 1000)
		w.run((bindLeases+1)*lease, of, other)
		w.alias("other.test")
		w.run((bindLeases+1)*lease, of, other)
		w.asked = [2]int{}
		if w.run((aliasLeases+1)*lease, of, other); w.asked == [2]int{} {
			t.Errorf("case %d: the host is not asked for %d leases", at, aliasLeases+1)
		}
	}
}

// TestAliasBesideAHostThatLeft: a daemon has the lease of an alias since before a host left the alias. The lease
// covers the address of that host. So it denies the daemon the address of another host of the alias, for a time.
func TestAliasBesideAHostThatLeft(t *testing.T) {
	w := &aliasWorld{T: t, now: second}
	w.store = memory.New(memory.Config{Now: func() time.Time { return start.Add(w.now) }})
	w.alias("elsewhere.test", "moves.test", "left.test")
	s := w.daemon("192.0.2.1", 0)
	s.addrs = map[string]netip.Addr{"elsewhere.test": netip.MustParseAddr("192.0.2.9")}
	w.give(s, "left.test", 2)
	w.run(lease, s)
	w.give(s, "elsewhere.test", 1000)
	w.run(lease, s)
	w.alias("elsewhere.test", "moves.test")
	w.give(s, "left.test", 2)
	w.run(lease, s)
	w.give(s, "moves.test", 5)
	if w.run((aliasLeases+1)*lease, s); w.asked[0] == 0 {
		t.Errorf("the host is not asked for %d leases", aliasLeases+1)
	}
}

// TestAliasThatChangesOften: a host joins and leaves an alias again and again, and two daemons get documents of
// it now and then. It is asked all the same.
func TestAliasThatChangesOften(t *testing.T) {
	w := &aliasWorld{T: t, now: second}
	w.store = memory.New(memory.Config{Now: func() time.Time { return start.Add(w.now) }})
	daemons := []*sharing{w.daemon("192.0.2.2", 0), w.daemon("192.0.2.2", 1)}
	for i := range 5 * bindLeases {
		if w.alias([][]string{{"other.test"}, {"other.test", "moves.test"}}[i%2]...); i == 3*bindLeases {
			w.asked = [2]int{}
		}
		for until := w.now + lease; w.now < until; {
			s := daemons[int(w.now/(10*second))%2]
			if s.e.slots.Counts().Held == 0 && s.e.intake.batch == nil {
				s.giveOf("moves.test", 3)
			}
			w.run(second/4, daemons...)
		}
	}
	if w.asked == [2]int{} {
		t.Errorf("the host is not asked for %d leases", 2*bindLeases)
	}
}

// TestHeldHostIsTheOldest: the oldest host of an alias has left it, and is held back. Another daemon has the
// group of its address. The alias goes on.
func TestHeldHostIsTheOldest(t *testing.T) {
	w := &aliasWorld{T: t, now: second}
	w.store = memory.New(memory.Config{Now: func() time.Time { return start.Add(w.now) }})
	s := w.daemon("192.0.2.2", 0)
	s.addrs = map[string]netip.Addr{"moves.test": netip.MustParseAddr("192.0.2.3")}
	bound := []reservation.Binding{{Host: "left.test", Group: "192.0.2.2"}} // by another daemon
	if _, err := w.store.Bind(t.Context(), bound, bindLeases*lease); err != nil {
		t.Fatal(err)
	}
	w.alias("moves.test", "left.test")
	w.give(s, "left.test", 20)
	w.run(second, s)
	w.give(s, "moves.test", 400)
	w.run(lease, s)
	w.alias("moves.test")
	w.now += 2 * lease
	_, _ = w.store.AddHost(t.Context(), "192.0.2.2", time.Time{})
	if _, err := w.store.TryReserve(t.Context(), "192.0.2.2", 100*lease, "another"); err != nil {
		t.Fatal(err)
	}
	w.asked = [2]int{}
	if w.run(lease, s); w.asked[0] == 0 {
		t.Error("the host that is left in the alias is not asked for a lease")
	}
}

// newAliasWorld returns a daemon that has the lease of an alias, and another daemon.
func newAliasWorld(t *testing.T) (w *aliasWorld, of, other *sharing) {
	w = &aliasWorld{T: t, now: second}
	w.store = memory.New(memory.Config{Now: func() time.Time { return start.Add(w.now) }})
	w.alias("other.test")
	of, other = w.daemon("192.0.2.1", 1), w.daemon("192.0.2.2", 0)
	w.give(of, "other.test", 400)
	return w, of, other
}

// aliasWorld has daemons that share the alias shop. It checks the gap of moves.test.
type aliasWorld struct {
	*testing.T
	now, last time.Duration
	store     reservation.Store
	asked     [2]int // requests to moves.test, by daemon
	others    int    // to other hosts
}

func (w *aliasWorld) alias(hosts ...string) {
	if err := w.store.SetAlias(w.Context(), "shop", hosts); err != nil {
		w.Fatal(err)
	}
}

func (w *aliasWorld) daemon(addr string, n int) *sharing {
	s := newSharing(w.T, w.store, netip.MustParseAddr(addr), n)
	s.shares()
	return s
}

// give has a daemon take documents of a host.
func (w *aliasWorld) give(s *sharing, host string, docs int) {
	s.work(w.now, false)
	for s.giveOf(host, docs); s.e.intake.batch != nil; w.now += second / 4 {
		s.work(w.now, false)
	}
}

// run lets time pass for some daemons.
func (w *aliasWorld) run(by time.Duration, daemons ...*sharing) {
	for until := w.now + by; w.now < until; w.now += second / 4 {
		for _, s := range daemons {
			s.work(w.now, false)
			for _, host := range s.endHosts() {
				if host != "moves.test" {
					w.others++
					continue
				}
				if w.last > 0 && w.now-w.last < second {
					w.Fatalf("at %v daemon %d asks the host %v after another request", w.now, s.from, w.now-w.last)
				}
				w.last = w.now
				w.asked[s.from]++
			}
		}
	}
}

// endHosts ends all lines that are sent now, and returns their hosts.
func (s *sharing) endHosts() (hosts []string) {
	out := bytes.Clone(s.e.Output(s.spider, nil))
	if out == nil {
		return nil
	}
	s.e.Written(s.spider)
	for line := range bytes.Lines(out) {
		f, err := protocol.ParseFetch(bytes.TrimSpace(line))
		if err != nil {
			s.Fatal(err)
		}
		trans, _ := protocol.ParseTrans(f.Trans)
		host, _, _ := bytes.Cut(f.URL[len("http://"):], []byte("/"))
		hosts = append(hosts, string(host))
		s.e.Lines(s.spider, []Line{{Status: protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200,
			HasStatus: true}}})
	}
	return hosts
}

// TestAliasWhoseOldestHostIsElsewhere: the host under whose name a daemon asks for the lease of an alias has
// left the alias, and another daemon has its group for good. The other hosts are asked soon.
func TestAliasWhoseOldestHostIsElsewhere(t *testing.T) {
	for _, docs := range []int{0, 20} { // of each host that has left
		for _, leave := range []int{1, 50} {
			t.Run(fmt.Sprint(docs, " documents of ", leave), func(t *testing.T) { testOldestHost(t, docs, leave) })
		}
	}
}

func testOldestHost(t *testing.T, docs, leave int) {
	w := &aliasWorld{T: t, now: second}
	w.store = memory.New(memory.Config{Now: func() time.Time { return start.Add(w.now) }})
	var left []string
	for i := range leave {
		left = append(left, fmt.Sprintf("h%d.test", i))
	}
	w.alias(append([]string{"moves.test"}, left...)...)
	s := w.daemon("192.0.2.2", 0)
	for _, host := range left {
		w.give(s, host, docs+1)
	}
	for docs == 0 && s.e.slots.Counts().Held > 0 || docs > 0 && w.others < 2 {
		w.run(lease, s)
	}
	s.addrs = map[string]netip.Addr{"moves.test": netip.MustParseAddr("192.0.2.3")}
	w.give(s, "moves.test", 10)
	w.alias("moves.test")
	w.now += 2 * lease // the daemon stands still, and its leases end
	for _, host := range left {
		if _, err := w.store.AddHost(w.Context(), host, time.Time{}); err != nil {
			t.Fatal(err)
		}
		_, err := w.store.TryReserve(w.Context(), host, 100*lease, "another") // of the group of all of them
		if host == left[0] && err != nil {
			t.Fatal(err)
		}
	}
	w.run(second, s) // ends what was sent before
	tries := w.tries(s)
	w.asked = [2]int{}
	if w.run(2*lease, s); w.asked[0] == 0 {
		t.Errorf("the host that is left is not asked within %v", 2*lease)
	}
	if n := w.tries(s) - tries; n > 100 {
		t.Errorf("%d leases were asked for; want 100 at most", n)
	}
}

func (w *aliasWorld) tries(s *sharing) uint64 {
	return s.e.stats.LeasesGranted + s.e.stats.LeasesDenied
}
