package engine

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/protocol"
)

// binder is an engine with a spider and documents of one host; it counts what it has to ask of the
// reservation.
type binder struct {
	*testing.T
	e      *Engine
	spider uint32
	addr   netip.Addr // of the host
	docs   int
	binds  []Bind
	tries  int
}

func newBinder(t *testing.T) *binder {
	b := &binder{T: t, addr: netip.MustParseAddr("192.0.2.1")}
	cfg := configs.Default()
	cfg.ReqHostPerSec, cfg.Robots.Enabled = 1, false
	b.e = New(cfg, Options{Lease: lease, Cached: func([]byte) (netip.Addr, error, bool) { return b.addr, nil, true }})
	b.e.Advance(10*second, time.Time{})
	b.spider = b.e.Connected("spider")
	return b
}

// give has the engine take one more document.
func (b *binder) give() {
	b.docs++
	p := &Prepared{}
	p.Batch.Add(fmt.Append(nil, b.docs), fmt.Appendf(nil, "%s/%d", site, b.docs), 0)
	p.Prepare()
	b.e.Answered(p)
	b.e.Step(nil)
}

// reserve answers what is asked of the reservation until nothing is.
func (b *binder) reserve(answers bool) {
	for c := b.e.Out.Leases; c != nil; c = b.e.Out.Leases {
		b.e.Out.Leases = nil
		for i := range c.Binds {
			if answers {
				c.Binds[i].Group = c.Binds[i].Addr.String()
			}
		}
		for i := range c.Acquires {
			c.Acquires[i].Token, c.Acquires[i].Answer = 1, Granted
		}
		b.binds, b.tries = append(b.binds, c.Binds...), b.tries+len(c.Acquires)
		b.e.LeasesAnswered(c)
		b.e.Step(nil)
	}
}

// fetch lets a second pass and all be done that is sent then.
func (b *binder) fetch() {
	b.e.Advance(b.e.now+second, time.Time{})
	b.e.Step(nil)
	out := b.e.Output(b.spider, nil)
	if out == nil {
		b.Fatal("nothing was sent")
	}
	b.e.Written(b.spider)
	trans, _ := protocol.ParseTrans(out[:bytes.IndexByte(out, ' ')])
	b.e.Lines(b.spider, []Line{{Status: protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200,
		HasStatus: true}}})
	b.e.Step(nil)
}

// TestHostThatComesBackSoonIsNotBoundAgain: what turns over within its gap asks nothing of the
// reservation.
func TestHostThatComesBackSoonIsNotBoundAgain(t *testing.T) {
	for _, tc := range []struct {
		name         string
		before       func(b *binder)
		binds, tries int
	}{
		{name: "at once", before: func(*binder) {}, binds: 1, tries: 1},
		{name: "with another address, while the binding holds",
			before: func(b *binder) { b.addr = b.addr.Next() }, binds: 1, tries: 1},
		{name: "with another address, later", before: func(b *binder) {
			b.addr = b.addr.Next()
			b.e.Advance(b.e.now+bindLeases*lease, time.Time{})
			b.e.Step(nil)
		}, binds: 3, tries: 2},
		{name: "a lease later", before: func(b *binder) { b.e.leases.bindings.byHost.At(1).at -= lease },
			binds: 2, tries: 1},
		{name: "when its gap has passed", before: func(b *binder) {
			b.e.Advance(b.e.now+second, time.Time{})
			b.e.Step(nil)
		}, binds: 2, tries: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBinder(t)
			b.give()
			b.reserve(true)
			b.fetch()
			b.reserve(true)
			tc.before(b)
			b.give()
			b.reserve(true)
			b.fetch()
			if len(b.binds) != tc.binds || b.tries != tc.tries {
				t.Errorf("%d binds and %d tries; want %d and %d", len(b.binds), b.tries, tc.binds, tc.tries)
			}
		})
	}
}

// TestBindingThatEndsKeepsTheLease: a host whose answer is too old at its turn waits for the next answer in
// its group, and does not lose the lease. It leaves the group if the answer is another one.
func TestBindingThatEndsKeepsTheLease(t *testing.T) {
	for _, moves := range []bool{false, true} {
		b := newBinder(t)
		b.give()
		b.reserve(true)
		b.fetch()
		b.give()
		b.e.leases.bindings.byHost.At(1).at -= bindLeases * lease
		b.e.Advance(b.e.now+second, time.Time{})
		b.e.Step(nil)
		if out := b.e.Output(b.spider, nil); out != nil {
			t.Fatalf("%q is sent under an answer that is too old", out)
		}
		first := b.addr
		if b.addr = b.addr.Next(); !moves {
			b.addr = first
		}
		for i := range b.e.Out.Leases.Binds {
			b.e.Out.Leases.Binds[i].Addr = b.addr
		}
		b.reserve(true)
		b.fetch()
		if want := map[bool]int{false: 1, true: 2}[moves]; b.tries != want {
			t.Errorf("another group %v: %d leases were asked for; want %d", moves, b.tries, want)
		}
		if got := b.e.slots.Host(1).Addr(); got != b.addr {
			t.Errorf("another group %v: the host is at %v; want %v", moves, got, b.addr)
		}
	}
}

// TestHeldHostGoesOn: a host that waits in its group for an answer is sent nothing while the reservation
// does not answer, and goes on when it does.
func TestHeldHostGoesOn(t *testing.T) {
	b := newBinder(t)
	b.give()
	b.reserve(true)
	b.fetch()
	b.give()
	b.e.leases.bindings.byHost.At(1).at -= bindLeases * lease
	for range 3 {
		b.e.Advance(b.e.now+2*leaseRetry, time.Time{})
		b.e.Step(nil)
		if b.e.Out.Leases == nil {
			t.Fatal("the reservation is not asked again")
		}
		b.reserve(false)
		if out := b.e.Output(b.spider, nil); out != nil {
			t.Fatalf("%q is sent while the reservation does not answer", out)
		}
	}
	b.e.Advance(b.e.now+2*leaseRetry, time.Time{})
	b.e.Step(nil)
	b.reserve(true)
	b.fetch()
}

// TestHostIsBoundOnce however many of its documents come before the answer.
func TestHostIsBoundOnce(t *testing.T) {
	b := newBinder(t)
	b.give()
	c := b.e.Out.Leases
	b.e.Out.Leases = nil
	b.give()
	b.e.Out.Leases = c
	b.give()
	b.reserve(true)
	for range 3 {
		b.fetch()
		b.reserve(true)
	}
	if len(b.binds) != 1 || b.tries != 1 {
		t.Errorf("%d binds and %d tries; want one each", len(b.binds), b.tries)
	}
}

// TestBindingThatIsNotAnsweredIsAskedForAgain with the address that the host has then.
func TestBindingThatIsNotAnsweredIsAskedForAgain(t *testing.T) {
	b := newBinder(t)
	b.give()
	b.addr = b.addr.Next()
	b.reserve(false)
	b.e.Advance(b.e.now+leaseRetry, time.Time{})
	b.e.Step(nil)
	b.reserve(true)
	if len(b.binds) != 2 || b.binds[1].Addr != b.addr {
		t.Errorf("binds are %+v; want a second one, with %v", b.binds, b.addr)
	}
	b.fetch()
}
