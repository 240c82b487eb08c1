package sim

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// world is the simulated web and DNS: documents, hosts, addresses.
type world struct {
	sc     *Scenario
	hosts  []site
	byName map[string]uint32
	docs   []page
}

// site is a host and the behaviour of its servers.
type site struct {
	name       string
	addrs      []uint32      // the host moves from one to the next
	stay       time.Duration // how long it stays at an address; 0: for ever
	dead       bool
	flaky      bool
	overloaded bool
	wanders    bool // each look-up gives an address chosen at random
	closed     bool // answers each spider with 503 and a Retry-After of an hour
	quick      bool
	sound      bool   // neither it nor a host at its address has trouble
	zone       uint8  // behaviour of its name's zone
	robots     uint8  // behaviour of its robots.txt
	delay      int    // Crawl-delay, in seconds
	next       uint32 // host that its robots.txt redirects to
}

// page is a document.
type page struct {
	host     uint32
	due      uint16 // number of the release in which it comes due
	kind     pageKind
	variant  uint8 // index in variants: scheme and port
	priority int8
}

type pageKind uint8

const (
	public  pageKind = iota
	private          // robots.txt disallows it, if there is one
	encoded          // its URL is not normalised
	poison           // its fetch crashes the spider
	endless          // its fetch never ends
	badURL
	badID
)

var variants = [...]struct{ scheme, port string }{
	{scheme: "http", port: ""}, {scheme: "https", port: ""}, {scheme: "http", port: ":8080"},
}

func newWorld(sc *Scenario) *world {
	w := &world{sc: sc, hosts: make([]site, sc.Hosts), byName: make(map[string]uint32, sc.Hosts),
		docs: make([]page, sc.Documents)}
	rng := rand.New(rand.NewPCG(sc.Seed, 2))
	for i := range w.hosts {
		s := w.newSite(uint32(i), rng)
		if sc.Crawls > 0 && s.name == hostName(uint32(i)) {
			s.name = scopedHost(uint32(i))
		}
		if _, taken := w.byName[s.name]; taken {
			s.name = hostName(uint32(i))
		}
		w.hosts[i] = s
		w.byName[s.name] = uint32(i)
	}
	if sc.Served {
		w.accidents()
	}
	for i := range w.docs {
		w.docs[i] = w.newPage(i, rng)
	}
	if sc.Served {
		w.markSound()
	}
	return w
}

func (w *world) newSite(i uint32, rng *rand.Rand) site {
	t := &w.sc.Trouble
	if t.Neighbours {
		return w.newNeighbour(i)
	}
	s := site{
		name: hostName(i), addrs: []uint32{w.home(i, rng)}, next: uint32(rng.IntN(w.sc.Hosts)),
		dead: rng.Float64() < t.Dead, flaky: rng.Float64() < t.Flaky, overloaded: rng.Float64() < t.Overload,
	}
	if rng.Float64() < t.Robots {
		s.robots = uint8(1 + rng.IntN(robotsHabits-1))
		s.delay = 1 + rng.IntN(max(1, t.CrawlDelay))
	}
	if rng.Float64() < t.Moves {
		for range 1 + rng.IntN(3) {
			s.addrs = append(s.addrs, uint32(rng.IntN(w.sc.Addresses)))
		}
		s.stay = t.MoveEvery/2 + time.Duration(rng.Int64N(int64(t.MoveEvery)))
	}
	if t.Wander > 0 {
		s.wanders = rng.Float64() < t.Wander
	}
	switch {
	case int(i) < w.sc.BigHosts:
		s = site{name: s.name, addrs: s.addrs, quick: true}
	case i%97 == 96: // its name is its address
		s = site{name: address(s.addrs[0]).String(), addrs: s.addrs[:1], robots: s.robots,
			delay: s.delay, next: s.next}
	}
	return s
}

const neighbours = 10 // hosts of an address, if Trouble.Neighbours is set

// newNeighbour returns a host that shares its address with others.
func (w *world) newNeighbour(i uint32) site {
	addresses := uint32(w.sc.Addresses)
	s := site{name: hostName(i), addrs: []uint32{i % addresses}}
	switch i / addresses {
	case neighbours - 1:
		s.closed = true
	case neighbours - 2:
		s.robots, s.delay = robotsDelay, 3600
	}
	return s
}

func hostName(i uint32) string { return fmt.Sprintf("h%d.example", i) }

// home returns a host's first address. Many hosts share one of the first addresses, few share one
// of the others.
func (w *world) home(i uint32, rng *rand.Rand) uint32 {
	switch {
	case int(i) < w.sc.BigHosts:
		return 0
	case w.sc.BigHosts > 0:
		return i - uint32(w.sc.BigHosts) + 1
	case rng.Float64() < min(0.05, 500/float64(w.sc.Hosts)):
		return uint32(rng.IntN(min(10, w.sc.Addresses)))
	}
	return uint32(rng.IntN(w.sc.Addresses))
}

func (w *world) newPage(i int, rng *rand.Rand) page {
	p := page{variant: uint8(max(0, rng.IntN(10)-7))}
	p.host, p.due = w.placeOf(i, rng)
	if rng.IntN(10) == 0 {
		p.priority = int8(rng.IntN(3) - 1)
	}
	switch n := rng.IntN(20); {
	case i < w.sc.Trouble.Poison:
		p.kind = poison
	case i < w.sc.Trouble.Poison+w.sc.Trouble.Endless:
		p.kind = endless
	case n < 2:
		p.kind = private
	case n < 3:
		p.kind = encoded
	case rng.Float64() < w.sc.Trouble.Invalid:
		p.kind = badURL + pageKind(rng.IntN(2))
	}
	return p
}

// placeOf returns a document's host, and the number of the release in which it comes due.
func (w *world) placeOf(i int, rng *rand.Rand) (host uint32, due uint16) {
	switch {
	case w.sc.Uneven:
		u := rng.Float64()
		host, due = uint32(u*u*float64(w.sc.Hosts)), uint16(rng.IntN(releases))
		if w.hosts[host].zone >= zoneBroken { // all at once, as when a crawler finds a link farm
			due = uint16(w.zone(host) / 4 * 7919 % releases)
		}
		return host, due
	case i < w.sc.Big:
		return uint32(i % w.sc.BigHosts), 0
	case w.sc.Big > 0:
		return uint32(w.sc.BigHosts + (i-w.sc.Big)/10), 0
	case rng.Float64() < w.sc.Scattered || w.sc.Hosts < 2:
		return uint32(rng.IntN(w.sc.Hosts)), uint16(rng.IntN(releases))
	}
	host = uint32(i * w.sc.Hosts / w.sc.Documents)
	return host, uint16(host * 7919 % releases)
}

const longEach = 3 // one of so many documents of a robotsCostly host has a long URL

var longPath = strings.Repeat("long/", 150)

// docID returns the DOC_ID of document n.
func (w *world) docID(n uint32) string {
	id := strconv.FormatUint(uint64(n), 10)
	if w.docs[n].kind == badID {
		return "no such " + id
	}
	return id
}

// url returns the URL of document n: raw as the index has it, text as it goes to a spider.
func (w *world) url(n uint32) (raw, text string) {
	p := &w.docs[n]
	v := variants[p.variant]
	name := hostInURL(w.hosts[p.host].name)
	base := v.scheme + "://" + name + v.port
	path := strconv.FormatUint(uint64(n), 10)
	switch p.kind {
	case private:
		text = base + "/private/" + path
	case encoded:
		return strings.ToUpper(base) + "/a/../p " + path + "#part", base + "/p%20" + path
	case badURL:
		return []string{"ftp://" + name + "/", "http://", base + "/" + strings.Repeat("x", 9000),
			"http://a b/"}[n%4], ""
	default:
		if text = base + "/p/" + path; w.sc.Crawls > 0 {
			text = base + scopedPath(n, w.sc.Shapes)
		}
		if w.hosts[p.host].robots == robotsCostly && n%longEach == 0 {
			text = base + "/p/" + longPath + path
		}
	}
	return text, text
}

func hostInURL(name string) string {
	if strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return name
}

// address returns the n-th address: IPv4 or IPv6, and public.
func address(n uint32) netip.Addr {
	if n%16 == 15 {
		return netip.AddrFrom16([16]byte{0x2a, 0x01, 4, 0xf8, 12: byte(n >> 24), 13: byte(n >> 16),
			14: byte(n >> 8), 15: byte(n)})
	}
	return netip.AddrFrom4([4]byte{byte(11 + n>>24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// addressAt returns the address of a host at a time; ok is false if it has none.
func (w *world) addressAt(h uint32, now time.Duration) (addr netip.Addr, ok bool) {
	s := &w.hosts[h]
	n := 0
	if s.stay > 0 {
		n = int(now/s.stay) % len(s.addrs)
	}
	return address(s.addrs[n]), !s.dead
}
