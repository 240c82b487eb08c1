package engine

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/protocol"
)

// TestDocumentsWaitWhileNoServerAnswers has the name servers away for one look-up.
func TestDocumentsWaitWhileNoServerAnswers(t *testing.T) {
	down := errors.New("no server")
	e := New(configs.Default(), Options{
		Cached: func([]byte) (netip.Addr, error, bool) { return netip.Addr{}, nil, false },
		Down:   func(err error) bool { return err == down },
	})
	p := &Prepared{}
	p.Batch.Add([]byte("1"), []byte(site+"/"), 0)
	p.Prepare()
	e.Answered(p)
	e.intake.asking = true
	e.Step(nil)
	if len(e.Out.Lookups) != 1 {
		t.Fatalf("look-ups are %q; want one", e.Out.Lookups)
	}
	e.Resolved(e.Out.Lookups[0], netip.Addr{}, down)
	e.Out.Lookups = nil
	if wait := e.Step(nil); wait < downRest || wait > downPause || e.Out.Outcomes.Len() != 0 {
		t.Fatalf("%d outcomes, next step in %v; want none, and %v at most", e.Out.Outcomes.Len(), wait, downPause)
	}
	stepAt(e, downPause)
	if len(e.Out.Lookups) != 1 {
		t.Fatalf("look-ups are %q; want one again", e.Out.Lookups)
	}
	e.Resolved(e.Out.Lookups[0], netip.Addr{}, errors.New("no such host"))
	e.Step(nil)
	if n := e.Out.Outcomes.Len(); n != 1 {
		t.Errorf("%d outcomes once a server says that there is no such host; want 1", n)
	}
}

// TestHostThatComesBack has a host with one document a second. It is looked up again when its address
// has expired, and goes to the new one then.
func TestHostThatComesBack(t *testing.T) {
	asked, addr := 0, netip.MustParseAddr("192.0.2.1")
	cfg := configs.Default()
	cfg.ReqHostPerSec, cfg.Robots.Enabled = 1, false
	e := New(cfg, Options{
		Cached:    func([]byte) (netip.Addr, error, bool) { asked++; return addr, nil, true },
		CachedFor: func([]byte) time.Duration { return 10 * second },
	})
	e.Advance(second, start)
	spider := e.Connected("spider")
	sent, first, moved := 0, 0, time.Duration(0)
	for now := 2 * second; now <= 20*second; now += second {
		e.Advance(now, start.Add(now))
		p := &Prepared{}
		p.Batch.Add(fmt.Append(nil, now), fmt.Appendf(nil, "http://a.test/%d", now), 0)
		p.Prepare()
		e.Answered(p)
		e.Step(nil)
		e.Step(nil)
		for _, to := range endAll(t, e, spider) {
			if sent++; sent == 1 {
				first, addr = asked, addr.Next()
			} else if to == addr && moved == 0 {
				moved = now
			} else if moved == 0 && asked != first {
				t.Errorf("at %v the resolver was asked %d times", now, asked-first)
			}
		}
	}
	if sent < 15 || moved < 12*second || moved > 14*second {
		t.Errorf("%d documents were sent; from %v on to the new address, want 12s to 14s", sent, moved)
	}
}

// endAll ends all documents that were sent to a spider, and returns their addresses.
func endAll(t *testing.T, e *Engine, spider uint32) (addrs []netip.Addr) {
	t.Helper()
	out := bytes.Clone(e.Output(spider, nil))
	if out == nil {
		return nil
	}
	e.Written(spider)
	for line := range bytes.Lines(out) {
		f, err := protocol.ParseFetch(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, f.Addr)
		trans, _ := protocol.ParseTrans(f.Trans)
		e.Lines(spider, []Line{{Status: protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200,
			HasStatus: true}}})
	}
	return addrs
}
