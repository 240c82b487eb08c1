package crawlstats

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"urlserver/docindex"
)

// paper is a document as the naive twin has it.
type paper struct {
	domain   *Domain
	priority int32
	place    State
	away     bool
}

// TestSurvey compares surveys with a count of all documents.
func TestSurvey(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		l := New()
		var all []*paper
		for step := range 2000 {
			switch {
			case len(all) == 0 || rnd.IntN(3) == 0:
				b := l.Open(docindex.CrawlID{Spider: "link", App: fmt.Sprint("app", rnd.IntN(2)),
					Crawl: fmt.Sprint("c", rnd.IntN(8))})
				d := l.Enter(b, fmt.Sprint("d", rnd.IntN(30)), 1)
				all = append(all, &paper{domain: d, priority: rnd.Int32N(30)})
			case rnd.IntN(5) == 0:
				i := rnd.IntN(len(all))
				p := all[i]
				l.Move(p.domain, p.priority, p.place, Completed, 1, 0)
				if l.Leave(p.domain, 1) {
					l.Release(p.domain.Crawl)
				}
				all = slices.Delete(all, i, i+1)
			default:
				p := all[min(rnd.IntN(len(all)), rnd.IntN(len(all)))] // the first ones move most
				to := State(rnd.IntN(int(States)))
				l.Move(p.domain, p.priority, p.place, to, 1, 0)
				p.place = to
			}
			if step%20 == 0 {
				compareSurvey(t, l, all, rnd, docindex.CrawlID{Spider: "link", App: "app0", Crawl: ""})
				compareSurvey(t, l, all, rnd, docindex.CrawlID{Spider: "link", App: "app1",
					Crawl: fmt.Sprint("c", rnd.IntN(8))})
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

func compareSurvey(t *testing.T, l *Stats, all []*paper, rnd *rand.Rand, id docindex.CrawlID) {
	t.Helper()
	most := 1 + rnd.IntN(60)
	v := l.BeginReport(id, most)
	for _, p := range all {
		p.away = p.place == InSlots && rnd.IntN(2) == 0
		if p.away && v.MayHaveInFlight() && v.Wants(p.domain) {
			v.InFlight(p.domain, p.priority)
		}
	}
	if got, want := v.End(), naiveSurvey(all, id, most); !reflect.DeepEqual(got, want) {
		t.Errorf("survey of %v is\n%+v; want\n%+v", id, got, want)
	}
}

// naiveSurvey counts all documents.
func naiveSurvey(all []*paper, id docindex.CrawlID, most int) (s docindex.PendingReport) {
	crawls, names := map[string]*docindex.CrawlPending{}, map[string]bool{}
	domains := map[*Domain]*docindex.DomainPending{}
	if id.Crawl != "" {
		crawls[id.Crawl] = &docindex.CrawlPending{Crawl: id.Crawl}
	}
	for _, p := range all {
		b := p.domain.Crawl
		if b.ID.App != id.App || id.Crawl != "" && b.ID.Crawl != id.Crawl || !p.place.pending() || p.away {
			continue
		}
		s.Total++
		names[p.domain.Name] = true
		c := crawls[b.ID.Crawl]
		if c == nil {
			c = &docindex.CrawlPending{Crawl: b.ID.Crawl}
			crawls[b.ID.Crawl] = c
		}
		count(&c.Pending, p.priority)
		d := domains[p.domain]
		if d == nil {
			d = &docindex.DomainPending{Domain: p.domain.Name}
			domains[p.domain] = d
			c.Distinct++
		}
		count(&d.Pending, p.priority)
	}
	s.Domains, s.Count = len(names), len(crawls)
	var order []*docindex.CrawlPending
	for _, c := range crawls {
		order = append(order, c)
	}
	slices.SortFunc(order, func(a, b *docindex.CrawlPending) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Crawl, b.Crawl))
	})
	naiveDomains(order, domains, most)
	for _, c := range order {
		s.Crawls = append(s.Crawls, *c)
	}
	return s
}

// naiveDomains adds the largest domains to their crawls, which stand in their order.
func naiveDomains(crawls []*docindex.CrawlPending, domains map[*Domain]*docindex.DomainPending, most int) {
	type entry struct {
		turn int
		*docindex.DomainPending
	}
	var all []entry
	for d, pending := range domains {
		turn := slices.IndexFunc(crawls, func(c *docindex.CrawlPending) bool { return c.Crawl == d.Crawl.ID.Crawl })
		all = append(all, entry{turn, pending})
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.turn, b.turn), cmp.Compare(a.Domain, b.Domain))
	})
	for _, one := range all[:min(most, len(all))] {
		crawls[one.turn].Domains = append(crawls[one.turn].Domains, *one.DomainPending)
	}
}

func count(p *docindex.Pending, priority int32) {
	if p.Total == 0 {
		p.Low, p.High = priority, priority
	}
	p.Total++
	p.Low, p.High = min(p.Low, priority), max(p.High, priority)
}
