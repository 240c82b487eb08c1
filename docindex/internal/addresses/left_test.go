package addresses

import (
	"net/netip"
	"testing"

	"urlserver/docindex"
)

// TestLeft: a URL that leaves some time after it was counted puts the next one off by a gap from then
// on.
func TestLeft(t *testing.T) {
	table := New(0)
	pace := docindex.Pace{Gap: 1000, Open: 2}
	at := docindex.HostAddress{Addr: netip.MustParseAddr("192.0.2.1"), SitePace: pace, AddressPace: pace}
	a, _ := table.Bind(0, []byte("a.test"), &at, 0)
	b, _ := table.Bind(0, []byte("b.test"), &at, 0)
	if !table.Take(a, 5000) {
		t.Fatal("a.test may not be taken")
	}
	table.Gave(a, 5000)
	table.Left(a, 5400)
	if from, _, _ := table.Wait(b, 5400); from != 6400 {
		t.Errorf("b.test may be taken at %d; want 6400", from)
	}
}
