package engine

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// zones is an engine with an index and name servers beside it, under virtual time. Names that begin
// with "bad" fail for now while broken says so, all others have addresses; each look-up takes 10
// ms.
type zones struct {
	*testing.T
	e        *Engine
	exact    bool // the index takes documents back
	broken   func(name string) error
	now      time.Duration
	store    []string // URLs that the index has yet to give, or to give again
	answers  []zoneAnswer
	ended    map[string]docindex.Kind // by URL
	at       map[string]time.Duration // when
	failing  int                      // the most documents of failing names that were held
	again    int                      // the most look-ups again that were out
	asks     int
	returned int
}

type zoneAnswer struct {
	at   time.Duration
	name string
}

func newZones(t *testing.T, exact bool, change func(c *configs.Config)) *zones {
	z := &zones{T: t, exact: exact, ended: map[string]docindex.Kind{}, at: map[string]time.Duration{}}
	z.broken = func(string) error { return errServfail }
	cfg := configs.Default()
	change(&cfg)
	z.e = New(cfg, Options{
		Cached: func([]byte) (netip.Addr, error, bool) { return netip.Addr{}, nil, false }, Exact: exact,
		ForNow: func(err error) bool { return err == errServfail },
		Down:   func(err error) bool { return err == errDown },
	})
	return z
}

// hosts puts a document for each of some hosts into the index.
func (z *zones) hosts(kind string, from, to int) {
	for n := from; n < to; n++ {
		z.store = append(z.store, fmt.Sprintf("http://%s%d.test/", kind, n))
	}
}

// run lets time pass; it stops early once enough is true.
func (z *zones) run(until time.Duration, enough func() bool) {
	for z.now < until && !enough() {
		z.e.Advance(z.now, start.Add(z.now))
		wait := z.e.Step(nil)
		if z.collect() {
			wait = 0
		}
		next := z.now + time.Minute
		if wait >= 0 {
			next = z.now + max(wait, time.Microsecond)
		}
		if len(z.answers) > 0 {
			next = min(next, z.answers[0].at)
		}
		z.now = max(z.now, next)
		for len(z.answers) > 0 && z.answers[0].at <= z.now {
			z.e.Advance(z.now, start.Add(z.now))
			z.resolve(z.answers[0].name)
			z.answers = z.answers[1:]
		}
	}
}

func (z *zones) resolve(name string) {
	if strings.HasPrefix(name, "bad") {
		if err := z.broken(name); err != nil {
			z.e.Resolved(name, netip.Addr{}, err)
			return
		}
	}
	n := 0
	_, _ = fmt.Sscanf(strings.TrimLeft(name, "badgo"), "%d", &n)
	z.e.Resolved(name, netip.AddrFrom4([4]byte{198, name[0], byte(n >> 8), byte(n)}), nil)
}

// collect does what the engine wants done; it tells whether the index was asked, which answers at
// once.
func (z *zones) collect() (asked bool) {
	out := &z.e.Out
	for _, name := range out.Lookups {
		z.answers = append(z.answers, zoneAnswer{z.now + 10*time.Millisecond, name})
	}
	for i := range out.Outcomes.Len() {
		o := out.Outcomes.At(i)
		z.ended[string(o.URL)], z.at[string(o.URL)] = o.Kind, z.now
	}
	if out.Returns.Len() > 0 && !z.exact {
		z.Fatal("documents are returned to an index that takes none back")
	}
	for i := range out.Returns.Len() {
		z.store = append(z.store, string(out.Returns.At(i).URL))
		z.returned++
	}
	ask := out.Ask
	*out = Out{}
	if ask != nil {
		z.asks++
		z.index(ask)
	}
	z.failing, z.again = max(z.failing, z.e.slots.Counts().Failing), max(z.again, z.e.dns.retrying)
	return ask != nil
}

func (z *zones) index(a *Ask) {
	rejected := map[string]bool{}
	for _, name := range a.Reject {
		rejected["http://"+name+"/"] = true
	}
	p := &Prepared{}
	z.store = slices.DeleteFunc(z.store, func(url string) bool {
		if p.Batch.Len() == a.Max || rejected[url] {
			return false
		}
		p.Batch.Add([]byte(url), []byte(url), 0)
		return true
	})
	p.Prepare()
	z.e.Answered(p)
}

// bound is how many documents of good hosts are in slots, or wait for one.
func (z *zones) bound() int {
	c := z.e.slots.Counts()
	return c.Held - c.Unresolved
}

// TestNamesThatFailHoldUpNobody has 6,000 names that fail between hosts that do not, as many as
// would fill all that may wait for names.
func TestNamesThatFailHoldUpNobody(t *testing.T) {
	for _, exact := range []bool{true, false} {
		t.Run(fmt.Sprintf("exact=%v", exact), func(t *testing.T) {
			z := newZones(t, exact, func(*configs.Config) {})
			giveUp := z.e.cfg.Resolver.GiveUp
			z.hosts("good", 0, 20)
			z.hosts("bad", 0, 6000)
			z.hosts("good", 20, 220)
			z.run(10*second, func() bool { return z.bound() == 220 })
			if n := z.bound(); n != 220 {
				t.Fatalf("%d of 220 documents of good hosts are there after %v", n, z.now)
			}
			if most := z.e.failingMost(); exact && z.failing > most {
				t.Errorf("%d documents of failing names were held; want %d at most", z.failing, most)
			}
			z.run(giveUp-1, func() bool { return len(z.ended) > 0 })
			if len(z.ended) > 0 {
				t.Fatalf("%v ended after %v", z.ended, z.now)
			}
			if most := z.e.cfg.Resolver.Concurrency / triesShare; z.again > most {
				t.Errorf("%d look-ups again were out at once; want %d at most", z.again, most)
			}
			z.run(giveUp+30*second, func() bool { return len(z.ended) == 6000 })
			for url, kind := range z.ended {
				if kind != docindex.DNS || !strings.HasPrefix(url, "http://bad") {
					t.Fatalf("%s ended as %v", url, kind)
				}
			}
			if len(z.ended) != 6000 {
				t.Errorf("%d of 6000 documents have ended %v after resolver.give_up", len(z.ended), z.now-giveUp)
			}
			z.run(z.now+2*giveUp, func() bool { return len(z.e.dns.failing) == 0 })
			if n := len(z.e.dns.failing); n > 0 || z.e.dns.retrying > 0 {
				t.Errorf("%d names are kept, %d look-ups are out; want none", n, z.e.dns.retrying)
			}
		})
	}
}

// TestNothingEndsForABriefFailure has four of five look-ups fail for 15 s, and then none.
func TestNothingEndsForABriefFailure(t *testing.T) {
	z := newZones(t, true, func(*configs.Config) {})
	n := 0
	z.broken = func(string) error {
		if n++; z.now < 15*second && n%5 > 0 {
			return errServfail
		}
		return nil
	}
	z.hosts("bad", 0, 3000)
	z.run(2*time.Minute, func() bool { return z.bound() == 3000 })
	if n := z.bound(); n != 3000 || len(z.ended) > 0 {
		t.Errorf("%d of 3000 documents have a host with an address, and %d have ended; want all and none",
			n, len(z.ended))
	}
}

// TestNothingEndsBeforeDNSWorks has no name server for an hour from the start: longer than
// resolver.give_up.
func TestNothingEndsBeforeDNSWorks(t *testing.T) {
	for _, exact := range []bool{true, false} {
		t.Run(fmt.Sprintf("exact=%v", exact), func(t *testing.T) {
			z := newZones(t, exact, func(*configs.Config) {})
			lookups := 0
			z.broken = func(string) error {
				if lookups++; z.now < time.Hour {
					return errDown
				}
				return nil
			}
			z.hosts("bad", 0, 4000)
			z.run(time.Hour, func() bool { return len(z.ended) > 0 })
			if len(z.ended) > 0 {
				t.Fatalf("%d documents have ended after %v", len(z.ended), z.now)
			}
			if most := 4000 + downTries*3600 + 100; lookups > most || z.asks > 3600+100 {
				t.Errorf("%d look-ups, %d requests to the index in an hour without name servers; want "+
					"%d and %d at most", lookups, z.asks, most, 3600+100)
			}
			z.run(time.Hour+30*second, func() bool { return z.bound() == 4000 })
			if n := z.bound(); n != 4000 || len(z.ended) > 0 {
				t.Errorf("%d of 4000 documents have a host with an address 30s after name servers came, "+
					"and %d have ended; want all and none", n, len(z.ended))
			}
		})
	}
}

// TestFailingHostWithManyDocuments: more documents of one failing host than may wait go back, and
// come again once it is found.
func TestFailingHostWithManyDocuments(t *testing.T) {
	z := newZones(t, true, func(c *configs.Config) { c.DocIndex.Batch, c.QueueCount = 10, 4 })
	down := true
	z.broken = func(string) error {
		if down {
			return errServfail
		}
		return nil
	}
	for n := range 100 {
		z.store = append(z.store, fmt.Sprintf("http://bad1.test/%d", n))
	}
	z.run(time.Minute, func() bool { return false })
	if z.failing > z.e.failingMost() || len(z.store)+z.e.slots.Counts().Held != 100 || z.returned == 0 {
		t.Errorf("%d documents were held at most, %d are, and %d are in the index; want %d at most, and "+
			"100 in all", z.failing, z.e.slots.Counts().Held, len(z.store), z.e.failingMost())
	}
	down = false
	z.run(5*time.Minute, func() bool { return z.bound() == 100 })
	if z.bound() == 0 || len(z.ended) > 0 {
		t.Errorf("%d documents have a host with an address, %d have ended; want some, and none", z.bound(),
			len(z.ended))
	}
}
