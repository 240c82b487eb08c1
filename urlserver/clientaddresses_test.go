package urlserver

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/internal/resolver"
)

// fakeNames is a resolver whose look-ups end when and how a test says.
type fakeNames struct {
	cache  map[string]error // nil: 192.0.2.1
	asked  map[string]func(netip.Addr, error)
	lookup int
}

func newFakeNames(change func(*configs.Config)) (*fakeNames, *clientAddresses) {
	f := &fakeNames{cache: map[string]error{}, asked: map[string]func(netip.Addr, error){}}
	c := newClientAddresses(nil, nil)
	c.resolve = func(host string, deliver func(netip.Addr, error)) { f.asked[host], f.lookup = deliver, f.lookup+1 }
	c.cached = func(host []byte) (netip.Addr, error, bool) {
		err, ok := f.cache[string(host)]
		return netip.MustParseAddr("192.0.2.1"), err, ok
	}
	cfg := configs.Default()
	if change != nil {
		change(&cfg)
	}
	c.configure(&cfg)
	return f, c
}

// TestClientAddresses checks the pace of a host at an address by settings and rules.
func TestClientAddresses(t *testing.T) {
	f, c := newFakeNames(func(cfg *configs.Config) {
		cfg.ReqHostPerSec, cfg.ReqHostConcurrent, cfg.Politeness.SitePerSec = 4, 3, 1
		cfg.Rules = []configs.HostRule{
			{Hosts: []string{"fast.test"}, PerSec: 10, Concurrent: 5},
			{Hosts: []string{"*.wiki.test"}, Group: "wiki"},
			{Hosts: []string{"bad.test"}, Block: true},
			{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, PerSec: 50, SiteConcurrent: 2},
		}
	})
	addr := netip.MustParseAddr("192.0.2.1")
	for host, want := range map[string]docindex.HostAddress{
		"a.test": {Addr: addr, SitePace: docindex.Pace{Gap: 1000, Open: 2},
			AddressPace: docindex.Pace{Gap: 20, Open: 3}},
		"fast.test": {Addr: addr, SitePace: docindex.Pace{Gap: 100, Open: 5},
			AddressPace: docindex.Pace{Gap: 20, Open: 3}},
		"x.wiki.test": {Addr: addr, Site: "wiki", SitePace: docindex.Pace{Gap: 1000, Open: 3},
			AddressPace: docindex.Pace{Gap: 20, Open: 3}},
		"bad.test": {Addr: addr, Blocked: true, SitePace: docindex.Pace{Gap: 1000, Open: 3},
			AddressPace: docindex.Pace{Gap: 20, Open: 3}},
	} {
		f.cache[host] = nil
		if got := c.of([]byte(host)); got != want {
			t.Errorf("%s: %+v; want %+v", host, got, want)
		}
	}
	f.cache["none.test"] = resolver.ErrNoHost
	got := c.of([]byte("none.test"))
	if got.State != docindex.AddressKnown || got.Network == "" || got.Addr.IsValid() ||
		got.AddressPace != (docindex.Pace{Gap: 1000, Open: 3}) {
		t.Errorf("a name without an address: %+v; want the pace of its site alone", got)
	}
}

// TestClientAddressesShared checks a shared network, and what raises the pace of an address.
func TestClientAddressesShared(t *testing.T) {
	f, c := newFakeNames(func(cfg *configs.Config) {
		cfg.Rules = []configs.HostRule{{Hosts: []string{"fast.test"}, PerSec: 10},
			{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Shared: true, Name: "cdn", PerSec: 20}}
	})
	f.cache["a.test"] = nil
	got := c.of([]byte("a.test"))
	if got.Network != "cdn" || got.AddressPace != (docindex.Pace{Gap: 50, Open: 10}) || got.SitePace.Gap != 2000 {
		t.Errorf("at a shared network: %+v", got)
	}
	f, c = newFakeNames(func(cfg *configs.Config) {
		cfg.Rules = []configs.HostRule{{Hosts: []string{"fast.test"}, PerSec: 10}}
	})
	f.cache["fast.test"], f.cache["a.test"] = nil, nil
	if !c.of([]byte("fast.test")).Raises || c.of([]byte("a.test")).Raises {
		t.Error("a rule by hosts raises the address of its host, and of no other")
	}
}

// TestClientAddressesLookups checks that concurrent look-ups are bounded, and that each name is
// looked up once.
func TestClientAddressesLookups(t *testing.T) {
	f, c := newFakeNames(nil)
	for i := range maxClientLookups {
		for range 2 {
			if a := c.of(fmt.Appendf(nil, "h%d.test", i)); a.State != docindex.AddressAwaited || a.Retry <= 0 {
				t.Fatalf("look-up %d: %+v; want awaited", i, a)
			}
		}
	}
	if a := c.of([]byte("one-more.test")); a.State != docindex.AddressBusy || f.lookup != maxClientLookups {
		t.Errorf("with %d look-ups under way: %+v; want busy", f.lookup, a)
	}
	f.cache["h0.test"] = nil
	f.asked["h0.test"](netip.Addr{}, nil)
	if a := c.of([]byte("h0.test")); a.State != docindex.AddressKnown {
		t.Errorf("after its look-up: %+v; want known", a)
	}
	if a := c.of([]byte("one-more.test")); a.State != docindex.AddressAwaited {
		t.Errorf("when a look-up has ended: %+v; want awaited", a)
	}
}

// TestClientAddressesFailing looks up a name that fails temporarily, with growing pauses, and gives
// it up after resolver.give_up, but not while no name server can be used.
func TestClientAddressesFailing(t *testing.T) {
	f, c := newFakeNames(func(cfg *configs.Config) { cfg.Resolver.GiveUp = 15 * time.Second })
	at := time.Unix(1000, 0)
	fail := func(after time.Duration, err error) docindex.HostAddress {
		at = at.Add(after)
		if _, begin := c.unknown([]byte("a.test"), nil, at); !begin {
			t.Fatalf("at %v the name is not looked up", at)
		}
		c.resolved("a.test", netip.Addr{}, err, at)
		a, begin := c.unknown([]byte("a.test"), nil, at)
		if begin {
			t.Fatal("the name is looked up again at once")
		}
		return a
	}
	for _, want := range []int64{2001, 4001, 8001} {
		if a := fail(time.Duration(want)*time.Millisecond, resolver.ErrServers); a.Retry != want {
			t.Errorf("after a failure it waits %d ms; want %d", a.Retry, want)
		}
	}
	if a := fail(10*time.Second, resolver.ErrServers); a.State != docindex.AddressKnown || a.Network == "" {
		t.Errorf("after resolver.give_up: %+v; want only the pace of its site", a)
	}
	down := fmt.Errorf("%w: %w", resolver.ErrServers, resolver.ErrDown)
	for range 20 {
		if a := fail(time.Minute, down); a.State != docindex.AddressAwaited {
			t.Fatalf("while no name server can be used: %+v; want awaited", a)
		}
	}
	at = at.Add(time.Hour)
	f.cache["a.test"] = nil
	c.resolved("a.test", netip.Addr{}, nil, at)
	if _, begin := c.unknown([]byte("a.test"), nil, at); !begin || f.lookup != 0 {
		t.Error("a name that resolved is still failing")
	}
}

// TestClientAddressesBrief: an answer whose TTL has passed when it arrives is used for a moment.
func TestClientAddressesBrief(t *testing.T) {
	f, c := newFakeNames(nil)
	c.of([]byte("a.test"))
	addr, now := netip.MustParseAddr("192.0.2.7"), time.Now()
	f.asked["a.test"](addr, nil)
	if a := c.of([]byte("a.test")); a.Addr != addr {
		t.Errorf("right after the answer: %+v; want %v", a, addr)
	}
	if _, begin := c.unknown([]byte("a.test"), nil, now.Add(10*time.Second)); !begin {
		t.Error("an answer without TTL counts for ten seconds")
	}
}
