package indextest

import (
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
)

// placesBench is counters of several daemons that share a store.
type placesBench struct {
	*testing.T
	a, b docindex.PageCounter
}

func (p *placesBench) take(c docindex.PageCounter, most, mostOfDomain int64, domains ...string) docindex.PlacesTaken {
	p.Helper()
	t, err := c.TakePages(p.Context(), "c", domains, most, mostOfDomain)
	if err != nil {
		p.Fatal(err)
	}
	return t
}

// counts makes a count that TakePages asks for.
func (p *placesBench) counts(c docindex.PageCounter, t docindex.PlacesTaken, n int64, domains map[string]int64) {
	p.Helper()
	if !t.Uncounted {
		p.Fatalf("%+v; want to be asked for a count", t)
	}
	if err := c.CountPages(p.Context(), "c", t.Epoch, n, domains); err != nil {
		p.Fatal(err)
	}
}

func (p *placesBench) settle(c docindex.PageCounter, t docindex.PlacesTaken, free, stored []string) {
	p.Helper()
	if err := c.SettlePages(p.Context(), "c", t.ID, free, stored); err != nil {
		p.Fatal(err)
	}
}

func (p *placesBench) forget(c docindex.PageCounter) {
	p.Helper()
	if err := c.ForgetPages(p.Context(), "c"); err != nil {
		p.Fatal(err)
	}
}

func (p *placesBench) want(what string, t docindex.PlacesTaken, limits ...docindex.PageLimit) {
	p.Helper()
	if !slices.Equal(t.Limits, limits) || (t.ID != "") != slices.Contains(limits, docindex.Placed) {
		p.Errorf("%s: %+v; want limits %v", what, t, limits)
	}
}

// Places tests how documents of crawls with a limited number of them are counted. start returns
// counters of two daemons; they may be one. pass makes time pass, if daemons that die are to be tested.
func Places(t *testing.T, start func(t *testing.T) (a, b docindex.PageCounter, pass func(time.Duration))) {
	for name, test := range map[string]func(*placesBench, func(time.Duration)){
		"crawl": placesOfCrawl, "domain": placesOfDomain, "recount": placesRecounted,
		"domains later": domainsLater, "death": placesOfDead,
	} {
		t.Run(name, func(t *testing.T) {
			a, b, pass := start(t)
			test(&placesBench{t, a, b}, pass)
		})
	}
}

// placesOfCrawl: a place that is taken and not settled keeps others waiting; only stored documents
// make the crawl full.
func placesOfCrawl(p *placesBench, _ func(time.Duration)) {
	p.counts(p.a, p.take(p.a, 3, 0, "x"), 1, nil)
	first := p.take(p.a, 3, 0, "x", "", "x")
	p.want("of two places", first, docindex.Placed, docindex.Placed, docindex.PlacesBusy)
	p.want("none is left", p.take(p.b, 3, 0, "y"), docindex.PlacesBusy)
	p.settle(p.a, first, []string{""}, []string{"x"})
	second := p.take(p.b, 3, 0, "y")
	p.want("one is free", second, docindex.Placed)
	p.settle(p.b, second, nil, []string{"y"})
	p.want("three are stored", p.take(p.a, 3, 0, "z"), docindex.CrawlFull)
	p.want("with room for more", p.take(p.a, 4, 0, "z"), docindex.Placed)
}

func placesOfDomain(p *placesBench, _ func(time.Duration)) {
	p.counts(p.a, p.take(p.a, 10, 2, "x"), 3, map[string]int64{"x": 1, "y": 2})
	first := p.take(p.a, 10, 2, "x", "x", "y", "z", "")
	p.want("of domains", first, docindex.Placed, docindex.PlacesBusy, docindex.DomainFull, docindex.Placed,
		docindex.Placed)
	p.settle(p.a, first, []string{"x"}, []string{"z", ""})
	second := p.take(p.b, 10, 2, "x", "z", "z")
	p.want("after one was free", second, docindex.Placed, docindex.Placed, docindex.PlacesBusy)
	p.settle(p.b, second, nil, []string{"x", "z"})
	p.want("two of each are stored", p.take(p.a, 10, 2, "x", "z"), docindex.DomainFull, docindex.DomainFull)
}

// placesRecounted: a count meets no document that is on its way, and one that has begun before
// documents were to be counted anew does not count.
func placesRecounted(p *placesBench, _ func(time.Duration)) {
	p.counts(p.a, p.take(p.a, 3, 0, "x"), 0, nil)
	first := p.take(p.a, 3, 0, "x")
	p.forget(p.b)
	p.want("while a document is put", p.take(p.b, 3, 0, "x"), docindex.PlacesBusy)
	p.settle(p.a, first, nil, []string{"x"})
	late := p.take(p.a, 3, 0, "x")
	p.forget(p.b)
	p.counts(p.a, late, 0, nil)
	p.counts(p.b, p.take(p.b, 3, 0, "x"), 1, nil)
	p.want("of two places", p.take(p.a, 3, 0, "x", "x", "x"), docindex.Placed, docindex.Placed, docindex.PlacesBusy)
}

// domainsLater: domains are limited while another daemon, which does not know that yet, puts.
func domainsLater(p *placesBench, _ func(time.Duration)) {
	p.counts(p.a, p.take(p.a, 10, 0, "x"), 0, nil)
	old := p.take(p.b, 10, 0, "x", "x")
	p.want("without the limit", old, docindex.Placed, docindex.Placed)
	p.want("with the limit, while that is put", p.take(p.a, 10, 2, "y"), docindex.PlacesBusy)
	p.settle(p.b, old, nil, []string{"x", "x"})
	p.counts(p.a, p.take(p.a, 10, 2, "y"), 2, map[string]int64{"x": 2})
	old = p.take(p.b, 10, 0, "y", "y")
	p.want("still without the limit", old, docindex.Placed, docindex.Placed)
	p.settle(p.b, old, nil, []string{"y", "y"})
	p.want("with the limit", p.take(p.a, 10, 2, "x", "y", "z"), docindex.DomainFull, docindex.DomainFull,
		docindex.Placed)
}

// placesOfDead: places of a daemon that died end by themselves. If it lives, what it says then is
// not believed: the documents are counted anew.
func placesOfDead(p *placesBench, pass func(time.Duration)) {
	if pass == nil {
		p.Skip("the places last as long as the daemon")
	}
	p.counts(p.a, p.take(p.a, 2, 0, "x"), 0, nil)
	dead := p.take(p.a, 2, 0, "x", "x")
	pass(20 * time.Second)
	p.want("before they end", p.take(p.b, 2, 0, "y"), docindex.PlacesBusy)
	pass(11 * time.Second)
	p.counts(p.b, p.take(p.b, 2, 0, "y"), 1, nil)
	live := p.take(p.b, 2, 0, "y", "y")
	p.want("one is stored", live, docindex.Placed, docindex.PlacesBusy)
	p.settle(p.a, dead, nil, []string{"x", "x"})
	p.want("after the dead daemon spoke", p.take(p.b, 2, 0, "y"), docindex.PlacesBusy)
	p.settle(p.b, live, nil, []string{"y"})
	p.counts(p.b, p.take(p.b, 2, 0, "y"), 3, nil)
	p.want("more are stored", p.take(p.b, 2, 0, "y"), docindex.CrawlFull)
}
