package crawlstats

import (
	"cmp"
	"slices"

	"urlserver/docindex"
)

// Report is a PendingReport in the making. Use BeginReport, then InFlight, then End.
type Report struct {
	l        *Stats
	crawl    string      // the only crawl; empty: all of app
	stats    *CrawlStats // of crawl; nil: there is none
	app      *app        // nil: there is none
	id       uint64
	domains  int
	atSlots  uint64          // documents with the slots that are not known to be at spiders
	inFlight []inFlightCount // of domains and of crawls
	all      docindex.PendingReport
	ranks    []rank
	last     rank // of the largest so far, once there are enough; smaller ones are not listed
}

// rank is a domain among the largest of all crawls, which are visited in turns.
type rank struct {
	load
	turn int
}

// reportMark says where a report counts the documents in flight of a crawl or domain.
type reportMark struct {
	report uint64
	at     int // in inFlight
}

// inFlightCount counts documents at spiders.
type inFlightCount struct {
	domain   *Domain // nil: of a crawl
	total    uint64
	first    level          // most have only one
	rest     PriorityCounts // of other priorities
	noneLeft int            // of a crawl: domains with all documents in flight
}

func (a *inFlightCount) of(priority int32) uint64 {
	switch {
	case a == nil:
		return 0
	case a.first.priority == priority:
		return a.first.n
	}
	return a.rest.Of(priority)
}

const maxInFlight = 1 << 16 // entries of memory that stays between reports

// BeginReport begins a report on a crawl, or, without a Crawl, on all crawls of an application at a
// spider. It lists up to so many domains.
func (l *Stats) BeginReport(id docindex.CrawlID, domains int) *Report {
	l.reports++
	v := &Report{
		l: l, crawl: id.Crawl, stats: l.byID[id], app: l.apps[appID{id.Spider, id.App}], id: l.reports,
		domains:  domains,
		inFlight: l.inFlight[:0],
	}
	switch {
	case id.Crawl != "" && v.stats != nil:
		v.atSlots = v.stats.Count[InSlots]
	case id.Crawl == "" && v.app != nil:
		v.atSlots = v.app.atSlots
	}
	return v
}

// MayHaveInFlight reports whether documents that the report counts may be at spiders: those are
// with the slots.
func (v *Report) MayHaveInFlight() bool { return v.atSlots > 0 }

// Wants reports whether the report is about a domain.
func (v *Report) Wants(d *Domain) bool {
	if v.crawl != "" {
		return d.Crawl == v.stats
	}
	return d.Crawl.app == v.app
}

// InFlight subtracts a document that is at a spider and so not pending.
func (v *Report) InFlight(d *Domain, priority int32) {
	v.atSlots--
	v.addInFlight(&d.inFlight, d, priority)
	v.addInFlight(&d.Crawl.inFlight, nil, priority)
	if v.pending(d) == 0 {
		v.inFlight[d.Crawl.inFlight.at].noneLeft++
	}
}

func (v *Report) addInFlight(m *reportMark, d *Domain, priority int32) {
	if m.report != v.id {
		*m = reportMark{v.id, len(v.inFlight)}
		v.inFlight = append(v.inFlight, inFlightCount{domain: d, first: level{priority: priority}})
	}
	gone := &v.inFlight[m.at]
	gone.total++
	if gone.first.priority == priority {
		gone.first.n++
	} else {
		gone.rest.Add(priority, 1)
	}
}

// of returns the documents in flight of a crawl or domain; nil: there are none.
func (v *Report) of(m reportMark) *inFlightCount {
	if m.report != v.id {
		return nil
	}
	return &v.inFlight[m.at]
}

// End returns the report.
func (v *Report) End() docindex.PendingReport {
	if v.crawl != "" {
		one := docindex.CrawlPending{Crawl: v.crawl}
		if b := v.stats; b != nil {
			one = v.count(b)
			v.rank(b, 0)
		}
		v.all = docindex.PendingReport{Crawls: []docindex.CrawlPending{one}, Total: one.Total,
			Domains: one.Distinct, Count: 1}
	} else if v.app != nil {
		v.countApp(v.app)
	}
	v.list()
	if cap(v.inFlight) <= maxInFlight {
		clear(v.inFlight)
		v.l.inFlight = v.inFlight
	}
	return v.all
}

// pending returns the pending documents of a domain, without those in flight.
func (v *Report) pending(d *Domain) uint64 {
	if gone := v.of(d.inFlight); gone != nil {
		return d.pending() - gone.total
	}
	return d.pending()
}

// count counts a crawl, without its domains.
func (v *Report) count(b *CrawlStats) docindex.CrawlPending {
	c := docindex.CrawlPending{Crawl: b.ID.Crawl, Expires: b.Expires, Distinct: len(b.loads),
		Pending: docindex.Pending{Total: b.Pending()}}
	gone := v.of(b.inFlight)
	if gone != nil {
		c.Total -= gone.total
		c.Distinct -= gone.noneLeft
	}
	if c.Total > 0 {
		c.Low, c.High = b.levels.span(gone)
	}
	return c
}

// countApp counts an application's crawls.
func (v *Report) countApp(a *app) {
	v.all.Domains = len(a.domains) - v.emptied(a)
	type counted struct {
		*CrawlStats
		total uint64
	}
	all := make([]*counted, 0, len(a.crawls))
	for _, b := range a.crawls {
		total := b.Pending()
		if gone := v.of(b.inFlight); gone != nil {
			total -= gone.total
		}
		if total > 0 {
			all = append(all, &counted{b, total})
			v.all.Total += total
		}
	}
	v.all.Count = len(all)
	slices.SortFunc(all, func(x, y *counted) int {
		if n := cmp.Compare(y.total, x.total); n != 0 {
			return n
		}
		return cmp.Compare(x.ID.Crawl, y.ID.Crawl)
	})
	all = all[:min(len(all), docindex.MaxReportedCrawls)]
	v.all.Crawls = slices.Grow(v.all.Crawls, len(all))
	for i, one := range all {
		v.all.Crawls = append(v.all.Crawls, v.count(one.CrawlStats))
		v.rank(one.CrawlStats, i)
	}
}

// emptied returns how many domains have no pending document that is not in flight, over all crawls
// of an application.
func (v *Report) emptied(a *app) (n int) {
	gone := map[string]uint64{}
	for i := range v.inFlight {
		if d := v.inFlight[i].domain; d != nil && d.pending() == v.inFlight[i].total {
			gone[d.Name] += v.inFlight[i].total
		}
	}
	for name, sum := range gone {
		if sum == a.domains[name] {
			n++
		}
	}
	return n
}

// rank collects the domains of a crawl that may be among the largest. Once the domains of the
// largest crawls are collected, most crawls have none.
func (v *Report) rank(b *CrawlStats, turn int) {
	full := v.last.Domain != nil
	if full && (b.top < v.last.pending || b.top == v.last.pending && turn > v.last.turn) {
		return
	}
	spared := v.of(b.inFlight) == nil
	b.top = 0
	for _, one := range b.loads {
		b.top = max(b.top, one.pending)
		if full && (one.pending < v.last.pending || one.pending == v.last.pending && turn > v.last.turn) {
			continue // without reading the domain, which is elsewhere in memory
		}
		if !spared {
			one.pending = v.pending(one.Domain)
		}
		r := rank{one, turn}
		if one.pending == 0 || full && larger(&r, &v.last) > 0 {
			continue
		}
		if v.ranks = append(v.ranks, r); len(v.ranks) >= 2*v.domains {
			v.cut()
			full = true
		}
	}
}

// larger orders domains: the largest first; of equal ones that of the larger crawl.
func larger(a, b *rank) int {
	switch {
	case a.pending != b.pending:
		return cmp.Compare(b.pending, a.pending)
	case a.turn != b.turn:
		return cmp.Compare(a.turn, b.turn)
	}
	return cmp.Compare(a.Name, b.Name)
}

// cut keeps the largest domains.
func (v *Report) cut() {
	slices.SortFunc(v.ranks, func(a, b rank) int { return larger(&a, &b) })
	if len(v.ranks) >= v.domains {
		v.ranks = v.ranks[:v.domains]
		v.last = v.ranks[v.domains-1]
	}
}

// list adds the largest domains to their crawls.
func (v *Report) list() {
	v.cut()
	for _, r := range v.ranks {
		one := docindex.DomainPending{Domain: r.Name, Pending: docindex.Pending{Total: r.pending}}
		one.Low, one.High = r.levels.span(v.of(r.inFlight))
		c := &v.all.Crawls[r.turn]
		c.Domains = append(c.Domains, one)
	}
}
