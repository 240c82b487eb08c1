package crawlstats

import (
	"cmp"
	"context"
	"slices"

	"urlserver/docindex"
)

// open counts the documents that are not completed.
func open(c *docindex.CrawlState) uint64 { return c.Scheduled + c.AtSlots + c.AtClients }

// compareStates orders crawls for operators.
func compareStates(c, d *docindex.CrawlState) int {
	return cmp.Or(cmp.Compare(open(d), open(c)), cmp.Compare(c.App, d.App), cmp.Compare(c.Crawl, d.Crawl),
		cmp.Compare(c.Spider, d.Spider))
}

// portion is how many crawls List looks at in one call of locked.
const portion = 1000

// List returns up to max crawls with text in a name, those with most open documents first, and
// counts all of them. It works in portions; locked calls its argument while nobody else uses the
// Stats.
func (l *Stats) List(
	ctx context.Context, text string, max int, locked func(func()),
) (some []docindex.CrawlState, all int, err error) {
	for from, more := 1, true; more; from += portion {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		before := len(some)
		locked(func() { some, more = l.states(some, from, text) })
		all += len(some) - before
		if len(some) > max+portion || !more {
			some = First(some, max, text)
		}
	}
	return some, all, nil
}

// First sorts crawls for operators and returns up to max of them: those with a crawl ID, which somebody
// looks for, and the first ones of the others.
func First(some []docindex.CrawlState, max int, id string) []docindex.CrawlState {
	sorted := make([]*docindex.CrawlState, len(some))
	others := max
	for i := range some {
		if sorted[i] = &some[i]; some[i].Crawl == id {
			others--
		}
	}
	slices.SortFunc(sorted, compareStates) // pointers: all sorts of them share their code
	first := make([]docindex.CrawlState, 0, min(len(some), max))
	for _, c := range sorted {
		if c.Crawl != id {
			others--
		}
		if len(first) < max && (c.Crawl == id || others >= 0) {
			first = append(first, *c)
		}
	}
	return first
}

// states appends the crawls of one portion.
func (l *Stats) states(to []docindex.CrawlState, from int, text string) (list []docindex.CrawlState, more bool) {
	end := min(from+portion, len(l.numbered))
	for _, b := range l.numbered[min(from, end):end] {
		if b != nil && b.ID.Has(text) {
			to = append(to, b.state())
		}
	}
	return to, end < len(l.numbered)
}

func (b *CrawlStats) state() docindex.CrawlState {
	return docindex.CrawlState{
		CrawlID: b.ID, Scheduled: b.Count[Scheduled], AtSlots: b.Count[InSlots], AtClients: b.Count[InClients],
		Done: b.Done(), Purged: b.Purged, Dropped: b.Dropped, Expires: b.Expires, Stopped: b.Stopped, Why: b.Why,
	}
}
