package engine

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/protocol"
)

const lease = 20 * second

// leasing is an engine with one document and a spider, at time 10 s, whose group has just been
// leased.
func leasing(t *testing.T, robots bool) (e *Engine, spider uint32) {
	t.Helper()
	cfg := configs.Default()
	cfg.ReqHostPerSec, cfg.Robots.Enabled = 1, robots
	e = New(cfg, Options{Lease: lease, Cached: func([]byte) (netip.Addr, error, bool) {
		return netip.MustParseAddr("192.0.2.1"), nil, true
	}})
	e.Advance(10*second, time.Time{})
	spider = e.Connected("spider")
	p := &Prepared{}
	p.Batch.Add([]byte("1"), []byte(site+"/1"), 0)
	p.Prepare()
	e.Answered(p)
	for range 2 { // bind, then reserve
		e.Step(nil)
		c := e.Out.Leases
		if e.Out.Leases = nil; c == nil {
			t.Fatal("the engine claims nothing")
		}
		for i := range c.Binds {
			c.Binds[i].Group = c.Binds[i].Addr.String()
		}
		for i := range c.Acquires {
			c.Acquires[i].Token, c.Acquires[i].Answer = 1, Granted
		}
		e.LeasesAnswered(c)
	}
	return e, spider
}

// TestLinesAreWorthNothingOncePastTheMargin: they are decided on at one moment, and written at
// another one.
func TestLinesAreWorthNothingOncePastTheMargin(t *testing.T) {
	e, spider := leasing(t, false)
	if sent := stepAt(e, 12*second); sent != 1 {
		t.Fatalf("sent %d documents; want 1", sent)
	}
	e.Advance(100*second, time.Time{})
	if lines := e.Output(spider, nil); len(lines) == 0 {
		t.Fatal("no line for the spider")
	}
	if by := e.WriteBy(spider); by != 12*second+lease/10 {
		t.Errorf("a line of 12 s is to be written by %v; want a tenth of the lease later", by)
	}
}

// TestLeaseThatLapsesWithAnOpenRequestIsNotReleased: the extension of a lease is answered when the lease has
// ended for the engine. A request is open. If the lease were released, another daemon could ask the host now.
func TestLeaseThatLapsesWithAnOpenRequestIsNotReleased(t *testing.T) {
	e, spider := leasing(t, false)
	if stepAt(e, 12*second); e.Output(spider, nil) == nil {
		t.Fatal("no line for the spider")
	}
	e.Written(spider)
	stepAt(e, 10*second+lease/2)
	c := e.Out.Leases
	if e.Out.Leases = nil; c == nil || len(c.Extends) != 1 {
		t.Fatalf("the reservation is asked %+v; want an extension", c)
	}
	stepAt(e, 10*second+lease)
	c.Extends[0].Answer = Granted
	e.LeasesAnswered(c)
	for at := 10*second + lease; at < 10*second+2*lease; at += second {
		stepAt(e, at)
		if c = e.Out.Leases; c == nil {
			continue
		}
		if e.Out.Leases = nil; len(c.Releases) > 0 {
			t.Fatalf("at %v the engine releases %+v while a request is open", at, c.Releases)
		}
		for i := range c.Acquires {
			c.Acquires[i].Answer = Denied
		}
		e.LeasesAnswered(c)
	}
}

// TestRobotsRequestsLeaveWithinTheLease: connecting may take longer than the lease.
func TestRobotsRequestsLeaveWithinTheLease(t *testing.T) {
	e, _ := leasing(t, true)
	stepAt(e, 12*second)
	if f := e.Out.Fetches; len(f) != 1 || f[0].By != 10*second+lease-lease/10 {
		t.Errorf("requests for robots.txt %+v; want one, by the end of the lease less a tenth", f)
	}
}

// TestAllIsToldAgainOnce however often the reservation has failed to take it.
func TestAllIsToldAgainOnce(t *testing.T) {
	e, _ := leasing(t, false)
	for group := range uint32(10) {
		e.leases.reporter.reported.set(1+group, "192.0.2.1")
	}
	for range 100 {
		e.LeasesAnswered(&LeaseBatch{ReportsLost: true})
	}
	if n := len(e.leases.reporter.changed); n != 10 {
		t.Errorf("%d groups are to be told; want 10", n)
	}
}

// TestFewerLeasesOfASlowReservation: a reservation that does not answer in time is asked for fewer
// new leases at once, and for more again when it answers.
func TestFewerLeasesOfASlowReservation(t *testing.T) {
	l := newLeases(Options{Lease: lease})
	full := func(answer LeaseAnswer) *LeaseBatch {
		c := &LeaseBatch{Acquires: make([]LeaseRequest, l.acquires)}
		for i := range c.Acquires {
			c.Acquires[i].Answer = Granted
		}
		c.Acquires[0].Answer = answer
		return c
	}
	for range 20 {
		l.adapt(full(Unanswered))
	}
	if l.acquires != fewestAcquires {
		t.Errorf("%d requests at once of a reservation that never answers; want %d", l.acquires, fewestAcquires)
	}
	l.adapt(&LeaseBatch{Acquires: []LeaseRequest{{Answer: Granted}}})
	if l.acquires != fewestAcquires {
		t.Error("a batch that was not full has raised the number of requests")
	}
	batches := 0
	for ; l.acquires < leaseBatch; batches++ {
		l.adapt(full(Denied))
	}
	if batches < 20 || batches > 60 {
		t.Errorf("after %d batches as many requests as ever; want it to take some time, but not for ever", batches)
	}
	l.adapt(&LeaseBatch{Extends: []LeaseRequest{{Answer: Unanswered}}})
	if l.acquires != leaseBatch/2 {
		t.Errorf("%d requests at once after an extension without an answer; want half", l.acquires)
	}
}

// TestLeaseIsLeftToClientsAtOnce: a host of which URL Frontier clients have a URL moves to an address
// that the engine has leased. The engine sends nothing more there, and releases the lease when its
// last request has ended.
func TestLeaseIsLeftToClientsAtOnce(t *testing.T) {
	e, spider := leasing(t, false)
	stepAt(e, 12*second)
	clients := NewClientLeases(lease, 1)
	e.opt.ClientsLack = func(name string) (waits, open bool) { return clients.Lacks(e.now, name) }
	if !clients.SetOpen(12*second, "192.0.2.1", true, 13*second) {
		t.Fatal("there is nothing to do about a URL at an address without a lease")
	}
	e.ClientsMoved(clients.Moved())
	if len(clients.Moved()) > 0 {
		t.Error("an address is named twice")
	}
	stepAt(e, 12*second)
	done, err := protocol.ParseStatus([]byte("0.0.0 DONE 200"))
	if err != nil {
		t.Fatal(err)
	}
	e.Lines(spider, []Line{{Status: done}})
	stepAt(e, 12*second+second/10)
	if c := e.Out.Leases; c == nil || len(c.Releases) != 1 || c.Releases[0].Host != "192.0.2.1" {
		t.Errorf("the engine asks for %+v; want to release the address", c)
	}
}

// TestStepLooksAtSomeLeases: a step looks at a batch of the groups that want leases, also if URL
// Frontier clients keep it from asking for any of them.
func TestStepLooksAtSomeLeases(t *testing.T) {
	const hosts = 3 * leaseBatch
	cfg, looked := configs.Default(), 0
	cfg.Robots.Enabled = false
	e := New(cfg, Options{Lease: lease, Cached: func(host []byte) (netip.Addr, error, bool) {
		n := 0
		_, _ = fmt.Sscanf(string(host), "h%d.test", &n)
		return netip.AddrFrom4([4]byte{192, 0, byte(n / 250), byte(n % 250)}), nil, true
	}, ClientsLack: func(string) (waits, open bool) {
		looked++
		return true, true
	}})
	e.Advance(10*second, time.Time{})
	e.Connected("spider")
	p := &Prepared{}
	for n := range hosts {
		p.Batch.Add(fmt.Append(nil, n), fmt.Appendf(nil, "http://h%d.test/", n), 0)
	}
	p.Prepare()
	e.Answered(p)
	for range 20 {
		before := looked
		e.Step(nil)
		if n := looked - before; n > leaseBatch {
			t.Fatalf("a step looks at %d groups; want %d at most", n, leaseBatch)
		}
		c := e.Out.Leases
		if e.Out.Leases = nil; c == nil {
			continue
		}
		for i := range c.Binds {
			c.Binds[i].Group = c.Binds[i].Addr.String()
		}
		e.LeasesAnswered(c)
	}
	if looked < hosts {
		t.Errorf("%d groups were looked at; want %d", looked, hosts)
	}
}
