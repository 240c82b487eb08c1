package urlserver

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/urlserver/engine"
)

// aliasSeeds is of how many runs TestAliasesThatChange consists.
const aliasSeeds = 40

// TestAliasesThatChange changes aliases of hosts and addresses at random while three daemons ask the hosts. Some
// daemons stand still for longer than their leases. No host is asked, and no address, sooner than its gap allows.
func TestAliasesThatChange(t *testing.T) {
	seeds, docs, sent := uint64(aliasSeeds), 0, 0
	if testing.Short() {
		seeds /= 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w, given := aliasesThatChange(t, seed)
			docs, sent = docs+given, sent+len(w.sent)
		})
	}
	if t.Logf("%d of %d documents were sent", sent, docs); sent < docs/2 {
		t.Errorf("%d of %d documents were sent; want half of them", sent, docs)
	}
}

func aliasesThatChange(t *testing.T, seed uint64) (w *world, docs int) {
	names := []string{"a.example", "b.example", "c.example", "d.example", "192.0.2.1", "192.0.2.2"}
	w = newWorld(t, seed, 3)
	w.mixed = seed%2 == 1
	w.found = func(nd *node, host string) netip.Addr {
		at := map[string]byte{"a.example": 1, "b.example": 1, "c.example": 2}[host]
		if at == 0 && nd == w.nodes[1] { // they find d.example at different addresses
			at = 2
		}
		return netip.AddrFrom4([4]byte{192, 0, 2, max(at, 1)})
	}
	for w.now < 8*time.Minute && !t.Failed() {
		for _, nd := range w.nodes {
			if w.rnd.IntN(20) == 0 && len(nd.flights) == 0 {
				nd.frozen = w.now + 2*worldLease
			}
			if nd.e.Stats().Slots.Held < 10 {
				ids, urls := docsOf(docs, 1+w.rnd.IntN(9), 4)
				docs += len(ids)
				w.give(nd, ids, urls)
			}
		}
		if w.rnd.IntN(3+10*int(seed%4)) == 0 {
			var hosts []string
			for _, i := range w.rnd.Perm(len(names))[:w.rnd.IntN(5)] {
				hosts = append(hosts, names[i])
			}
			w.set([]string{"one", "two"}[w.rnd.IntN(2)], hosts...)
		}
		w.run(time.Duration(1+w.rnd.IntN(5)) * time.Second)
	}
	return w, docs
}

func (w *world) set(alias string, hosts ...string) {
	if err := w.store.SetAlias(w.t.Context(), alias, hosts); err != nil {
		w.t.Fatal(err)
	}
}

const aliasAddr = "192.0.2.1"

// newAliasWorld makes a world whose hosts are all at one address.
func newAliasWorld(t *testing.T, nodes int) *world {
	w := newWorld(t, 1, nodes)
	w.found = func(*node, string) netip.Addr { return netip.MustParseAddr(aliasAddr) }
	return w
}

// freeze makes a daemon stand still until it has lost its leases. It waits until no request is open: those may
// outlive a lease.
func (w *world) freeze(nd *node) {
	for len(nd.flights) > 0 {
		w.run(10 * time.Millisecond)
	}
	nd.frozen = w.now + 2*worldLease
}

// TestAddressLeavesAnAlias: a daemon asks two hosts at an address in the group of an alias, one of them because
// the address is in the alias. The address leaves the alias, the daemon loses its leases, and another one asks
// that host, too.
func TestAddressLeavesAnAlias(t *testing.T) {
	const docs = 60 // of each host
	w := newAliasWorld(t, 2)
	w.set("one", "a.example", aliasAddr)
	ids, urls := docsOf(0, 2*docs, 2)
	w.give(w.nodes[0], ids, urls)
	w.run(2 * worldLease)
	w.freeze(w.nodes[0])
	w.set("one", "a.example", "c.example")
	w.run(3 * worldLease / 2)
	ids, urls = docsOf(2*docs, 2*docs, 2)
	for i := range urls {
		urls[i] = strings.Replace(urls[i], "a.example", "b.example", 1)
	}
	w.give(w.nodes[1], ids, urls)
	if w.run(40 * worldLease); len(w.sent) != 4*docs {
		t.Errorf("%d documents were sent; want %d", len(w.sent), 4*docs)
	}
}

// TestAddressJoinsAnAlias: daemons ask a host of an alias, and another host at the same address. The address joins
// the alias, and the daemons may lose their leases then. Both hosts are asked on.
func TestAddressJoinsAnAlias(t *testing.T) {
	for nodes := 1; nodes <= 2; nodes++ {
		for hosts := 1; hosts <= 2; hosts++ { // a.example is in the alias
			for _, freezes := range []bool{false, true} {
				t.Run(fmt.Sprint(nodes, " daemons, ", hosts, " hosts, freezing ", freezes), func(t *testing.T) {
					testAddressJoins(t, nodes, hosts, freezes)
				})
			}
		}
	}
}

func testAddressJoins(t *testing.T, nodes, hosts int, freezes bool) {
	const docs = 1000
	w := newAliasWorld(t, nodes)
	w.set("one", "a.example", "c.example")
	for n, nd := range w.nodes {
		ids, urls := docsOf(n*docs, docs, hosts)
		w.give(nd, ids, urls)
	}
	w.run(5 * worldLease)
	w.set("one", "a.example", "c.example", aliasAddr)
	for _, nd := range w.nodes {
		if freezes {
			w.freeze(nd)
		}
	}
	w.run(20 * worldLease)
	for _, host := range []string{"a.example", "b.example"}[:hosts] {
		if at := w.last[host]; at < w.now-2*worldLease {
			t.Errorf("%s was last asked at %v; it is %v", host, at, w.now)
		}
	}
}

// TestAddressLeavesAnAliasBesideClients: URL Frontier clients of another daemon take turns at the address. They
// extend the lease of the address, and hosts there are asked again nonetheless.
func TestAddressLeavesAnAliasBesideClients(t *testing.T) {
	w := newAliasWorld(t, 1)
	w.set("one", "c.example", aliasAddr)
	ids, urls := docsOf(0, 1000, 2)
	w.give(w.nodes[0], ids, urls)
	w.run(2 * worldLease)
	w.set("one", "c.example")
	clients := engine.NewClientLeases(worldLease, 1)
	r := &Reserver{Store: w.store, Lease: worldLease, Holder: "clients", Log: zerolog.Nop(), now: w.nodes[0].r.now}
	for end := w.now + 20*worldLease; w.now < end; w.run(100 * time.Millisecond) {
		clients.Usable(w.now, aliasAddr)
		if work, _ := clients.Step(w.now); work != nil {
			r.do(t.Context(), work)
			clients.Answered(w.now, work)
		}
	}
	for _, host := range []string{"a.example", "b.example"} {
		if at := w.last[host]; at < w.now-6*worldLease {
			t.Errorf("%s was last asked at %v; it is %v", host, at, w.now)
		}
	}
}

// TestAliasesMeetAtAnAddress: of two hosts at an address one is in an alias with the address, and the other one is in
// another alias. That one waits in line for the lease of the address, which the lease of the first alias denies. The
// first host goes on nonetheless, so that the daemon gives its lease up when it has had its turn.
func TestAliasesMeetAtAnAddress(t *testing.T) {
	const docs = 100 // of each daemon
	for nodes := 1; nodes <= 2; nodes++ {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprint(nodes, " daemons, later ", later), func(t *testing.T) {
				w := newAliasWorld(t, nodes)
				w.set("one", "b.example")
				w.set("two", "a.example", aliasAddr)
				if later {
					w.set("two", "a.example")
				}
				for n, nd := range w.nodes {
					ids, urls := docsOf(n*docs, docs, 2)
					w.give(nd, ids, urls)
				}
				w.run(5 * worldLease)
				w.set("two", "a.example", aliasAddr)
				if w.run(55 * worldLease); len(w.sent) != nodes*docs {
					t.Errorf("%d documents were sent; want %d", len(w.sent), nodes*docs)
				}
			})
		}
	}
}
