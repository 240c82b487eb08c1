package engine

import (
	"errors"
	"net/netip"
	"testing"

	"urlserver/configs"
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
