package redis

import (
	"net/netip"
	"testing"
	"time"

	"urlserver/docindex"
)

// addressUse says whether a daemon has the lease of an address.
type addressUse bool

func (u addressUse) Usable(int) bool                      { return bool(u) }
func (u addressUse) Holds() bool                          { return bool(u) }
func (u addressUse) Share(of docindex.Pace) docindex.Pace { return of }
func (u addressUse) Gave()                                {}
func (u addressUse) SetOpen(int, int64, int64)            {}

// TestAddressOfAnotherDaemon has two daemons on one index, and an address that is leased to one of
// them. The clients of the other one are given nothing, and hold up nobody, not even for a moment: the
// address has its pace.
func TestAddressOfAnotherDaemon(t *testing.T) {
	d := newDaemons(t)
	owner, other := d.start(), d.start()
	pace := docindex.Pace{Gap: 2000, Open: 1}
	for s, use := range map[*Store]addressUse{owner: true, other: false} {
		s.SetAddresses(func([]byte) docindex.HostAddress {
			return docindex.HostAddress{Addr: netip.MustParseAddr("192.0.2.1"), SitePace: pace,
				AddressPace: pace, Use: use}
		})
	}
	put(t, owner, 12)
	served := func(s *Store) (urls []string) {
		r := docindex.Request{AnyCrawl: true, PerQueue: 1, MaxQueues: 1, Lease: testLease}
		err := s.Serve(t.Context(), r, func(h *docindex.Served) error {
			for i := range h.Len() {
				urls = append(urls, string(h.At(i).URL))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return urls
	}
	for gap := range 5 {
		d.pass(2100 * time.Millisecond)
		if urls := served(other); len(urls) > 0 {
			t.Fatalf("%q are served by a daemon without the lease", urls)
		}
		urls := served(owner)
		if len(urls) != 1 {
			t.Fatalf("after gap %d, %q are served by the daemon with the lease; want one", gap, urls)
		}
		reportFetched(t, owner, urls[0])
	}
}

// reportFetched reports a URL as fetched by a client.
func reportFetched(t *testing.T, s *Store, url string) {
	t.Helper()
	var p docindex.Puts
	if err := p.Add(docindex.Put{URL: []byte(url), Update: true, Due: docindex.Never}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}
