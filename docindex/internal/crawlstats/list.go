package crawlstats

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// CrawlState is how a crawl stands. What it was refused for, it was purged for.
type CrawlState struct {
	CrawlID
	Scheduled uint64
	AtSlots   uint64 // handed out to the slots; some of them are at spiders
	AtClients uint64 // handed out by calls
	Done      uint64 // completed, but for those purged
	Purged    uint64
	Dropped   uint64 // came after the crawl was refused
	Expires   int64  // seconds since 1970; 0: never
	Refused   bool
	Why       uint8 // of Refused: the store's kind
}

// open counts what has not ended.
func (c *CrawlState) open() uint64 { return c.Scheduled + c.AtSlots + c.AtClients }

// before orders crawls for people.
func (c *CrawlState) before(d *CrawlState) int {
	return cmp.Or(cmp.Compare(d.open(), c.open()), cmp.Compare(c.App, d.App), cmp.Compare(c.Crawl, d.Crawl), cmp.Compare(c.Spider, d.Spider))
}

// portion is how many books are looked at by one call of locked.
const portion = 1000

// List lists crawls that have a text in a name, at most so many, those with most open documents first, and counts all of
// them. locked calls its argument while nobody else uses the books, which are looked through in portions.
func (l *Books) List(ctx context.Context, text string, max int, locked func(func())) (some []CrawlState, all int, err error) {
	for from, more := 1, true; more; from += portion {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		before := len(some)
		locked(func() { some, more = l.states(some, from, text) })
		all += len(some) - before
		if len(some) > max+portion || !more {
			some = First(some, max)
		}
	}
	return some, all, nil
}

// First sorts crawls for people and returns the first, at most so many.
func First(some []CrawlState, max int) []CrawlState {
	slices.SortFunc(some, func(a, b CrawlState) int { return a.before(&b) })
	return some[:min(len(some), max)]
}

// states adds the crawls of one portion.
func (l *Books) states(to []CrawlState, from int, text string) (list []CrawlState, more bool) {
	end := min(from+portion, len(l.numbered))
	for _, b := range l.numbered[min(from, end):end] {
		if b != nil && b.ID.Has(text) {
			to = append(to, b.state())
		}
	}
	return to, end < len(l.numbered)
}

func (b *Book) state() CrawlState {
	return CrawlState{
		CrawlID: b.ID, Scheduled: b.Count[Lined], AtSlots: b.Count[AtSlots], AtClients: b.Count[AtClients],
		Done: b.Done(), Purged: b.Purged, Dropped: b.Dropped, Expires: b.Expires, Refused: b.Refused, Why: b.Why,
	}
}

// Has reports whether a name of the crawl has the text in it.
func (id CrawlID) Has(text string) bool {
	return strings.Contains(id.App, text) || strings.Contains(id.Crawl, text) || strings.Contains(id.Spider, text)
}
