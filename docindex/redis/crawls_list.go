package redis

import (
	"context"
	"strconv"
	"strings"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
)

const (
	listPage    = 1000 // crawls that a shard returns at once
	pendingPage = 200  // the same, with pending documents by domain
)

// ListCrawls is [docindex.CrawlLister.ListCrawls].
func (s *Store) ListCrawls(ctx context.Context, search string, most int) (some []docindex.CrawlState,
	all int, err error) {
	pages := crawlPages{s: s, most: listPage}
	for {
		r, err := pages.next(ctx)
		if err != nil {
			return nil, 0, err
		}
		if r != nil && r.Has(search) {
			all++
			some = append(some, r.state())
		}
		if len(some) > most+listPage || r == nil {
			some = crawlstats.First(some, most, search)
		}
		if r == nil {
			return some, all, nil
		}
	}
}

// CrawlCounts is [docindex.Crawls.CrawlCounts].
func (s *Store) CrawlCounts(ctx context.Context, most int) (some []docindex.CrawlCounts, err error) {
	pages := crawlPages{s: s, most: max(most, 1)}
	var listed row
	for len(some) < most {
		r, err := pages.next(ctx)
		if err != nil {
			return nil, err
		}
		if r == nil {
			break
		}
		some = append(some, r.tally())
		for i, n := range r.sum {
			listed.sum[i] += n
		}
	}
	var other row
	for i, n := range pages.all {
		other.sum[i] = n - min(n, listed.sum[i])
	}
	return append(some, other.tally()), nil
}

// ReportPending is [docindex.Crawls.ReportPending]. away lists the documents that are in flight at
// this daemon's spiders. Documents in flight at the spiders of other daemons count as pending.
func (s *Store) ReportPending(ctx context.Context, id docindex.CrawlID, domains int,
	away *docindex.Outcomes) (docindex.PendingReport, error) {
	if id.Crawl == "" {
		return s.reportApp(ctx, id, domains, away)
	}
	v := pendingReport{id: id, stats: crawlstats.New(), domains: map[domainOf]*pendingOf{}}
	if err := v.read(ctx, s); err != nil {
		return docindex.PendingReport{}, err
	}
	missing, err := s.away(ctx, id, away)
	if err != nil {
		return docindex.PendingReport{}, err
	}
	return v.end(domains, missing), nil
}

// pendingReport collects the counts of all shards in a crawlstats.Stats, so that all stores report
// in the same way.
type pendingReport struct {
	id      docindex.CrawlID
	stats   *crawlstats.Stats
	domains map[domainOf]*pendingOf
}

type domainOf struct {
	crawl  string
	domain string
}

type pendingOf struct {
	domain *crawlstats.Domain
	levels crawlstats.PriorityCounts
}

// read reads the crawl of the report.
func (v *pendingReport) read(ctx context.Context, s *Store) error {
	rows, err := s.rowsOf(ctx, []string{nameOfCrawl(v.id)}, true)
	if err == nil && rows[0].exists() {
		v.add(&rows[0])
	}
	return err
}

// add adds a crawl's counts to the report.
func (v *pendingReport) add(r *row) {
	b := v.stats.Open(r.CrawlID)
	v.stats.ExpireAt(b, r.till)
	var met []*pendingOf
	for i := range r.parts {
		for pairs := r.parts[i].levels; len(pairs) >= 2; pairs = pairs[2:] {
			level, domain, _ := strings.Cut(text(pairs[0]), " ")
			key := domainOf{r.name, domain}
			p := v.domains[key]
			if p == nil {
				p = &pendingOf{domain: v.stats.Enter(b, domain, 0)}
				v.domains[key], met = p, append(met, p)
			}
			p.levels.Add(priorityOf(level), uint64(max(0, number(pairs[1]))))
		}
	}
	for _, p := range met {
		v.stats.Fill(p.domain, &p.levels)
	}
}

// absent is a document that is in flight.
type absent struct {
	domainOf
	priority int32
}

// end makes the report. Shards are read at different moments, so a document counts as in flight
// only if its shard counted it as pending.
func (v *pendingReport) end(domains int, away []absent) docindex.PendingReport {
	report := v.stats.BeginReport(v.id, domains)
	for _, a := range away {
		if p := v.domains[a.domainOf]; p != nil && p.levels.Of(a.priority) > 0 {
			p.levels.Add(a.priority, ^uint64(0))
			report.InFlight(p.domain, a.priority)
		}
	}
	return report.End()
}

// away returns which of the documents belong to the crawls of a report and are in this daemon's
// slots.
func (s *Store) away(ctx context.Context, id docindex.CrawlID, o *docindex.Outcomes) (all []absent, err error) {
	if o == nil {
		return nil, nil
	}
	for from := 0; from < o.Len(); from += outcomeBatch {
		if all, err = s.addAway(ctx, id, o, from, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) addAway(ctx context.Context, id docindex.CrawlID, o *docindex.Outcomes, from int,
	all []absent) ([]absent, error) {
	var ids []string
	for i := from; i < min(from+outcomeBatch, o.Len()); i++ {
		ids = append(ids, string(o.At(i).DocID))
	}
	places, err := s.find(ctx, ids)
	if err != nil {
		return nil, err
	}
	var args [shards][]string
	for i, w := range places {
		if w.known() {
			args[w.shard] = append(args[w.shard], w.queue, w.hash, string(o.At(from+i).URL))
		}
	}
	answers, err := s.all(ctx, opsOf(awayScript, args[:],
		func(int) []string { return []string{nameOfCrawl(id), flag(id.Crawl != "")} }))
	for _, a := range answers {
		for m := list(a.value); len(m) >= 3; m = m[3:] {
			all = append(all, absent{domainOf{text(m[0]), text(m[1])}, int32(number(m[2]))})
		}
	}
	return all, err
}

func priorityOf(level string) int32 {
	n, _ := strconv.ParseInt(level, 10, 32)
	return int32(n)
}
