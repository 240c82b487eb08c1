package scoped

import (
	"context"
	"strconv"
	"sync"

	"urlserver/docindex"
)

// places counts the documents of crawls with a limited number of them, for one daemon. Its places last
// as long as the daemon. It is safe for concurrent use.
type places struct {
	mu     sync.Mutex // guards all below; held for memory work only
	epoch  uint64     // changes when documents are to be counted anew
	taken  uint64     // number of places given so far; it names them
	crawls map[string]*counted
}

var _ docindex.PageCounter = (*places)(nil)

// counted has the counts of a crawl.
type counted struct {
	known   bool // else only unsettled counts
	pages   pageCount
	domains map[string]*pageCount // nil: not known
	epoch   uint64
	takes   map[string]struct{} // that are not settled
}

// pageCount is a number of documents.
type pageCount struct{ pages, unsettled int64 } // unsettled are places among pages

func newPlaces() *places { return &places{crawls: map[string]*counted{}} }

// full returns whether a document finds no place, and whether only unsettled places are in its way.
func (n *pageCount) full(most int64) (full, busy bool) {
	full = most > 0 && n.pages >= most
	return full, full && n.pages-n.unsettled < most
}

func (p *places) ofLocked(crawl string) *counted {
	c := p.crawls[crawl]
	if c == nil {
		c = &counted{epoch: p.epoch, takes: map[string]struct{}{}}
		p.crawls[crawl] = c
	}
	return c
}

// TakePages is [docindex.PageCounter.TakePages].
func (p *places) TakePages(
	_ context.Context, crawl string, domains []string, most, mostOfDomain int64,
) (t docindex.PlacesTaken, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.ofLocked(crawl)
	if c.known && mostOfDomain > 0 && c.domains == nil {
		p.forgetLocked(c)
	}
	if !c.known && len(c.takes) == 0 {
		return docindex.PlacesTaken{Uncounted: true, Epoch: strconv.FormatUint(c.epoch, 10)}, nil
	}
	some := false
	for _, domain := range domains {
		limit := c.limit(domain, most, mostOfDomain)
		if limit == docindex.Placed {
			c.bump(domain, 1, 1)
			some = true
		}
		t.Limits = append(t.Limits, limit)
	}
	if some {
		p.taken++
		t.ID = strconv.FormatUint(p.taken, 10)
		c.takes[t.ID] = struct{}{}
	}
	return t, nil
}

// limit returns why a document finds no place.
func (c *counted) limit(domain string, most, mostOfDomain int64) docindex.PageLimit {
	full, busy := c.pages.full(most)
	ofFull, ofBusy := false, false
	if n := c.domains[domain]; n != nil && domain != "" {
		ofFull, ofBusy = n.full(mostOfDomain)
	}
	switch {
	case full && !busy && c.known:
		return docindex.CrawlFull
	case ofFull && !ofBusy && c.known:
		return docindex.DomainFull
	case full || ofFull || !c.known:
		return docindex.PlacesBusy
	}
	return docindex.Placed
}

// bump counts documents, of which some places are not settled.
func (c *counted) bump(domain string, pages, unsettled int64) {
	c.pages.pages += pages
	c.pages.unsettled += unsettled
	if domain == "" || c.domains == nil {
		return
	}
	n := c.domains[domain]
	if n == nil {
		n = &pageCount{}
		c.domains[domain] = n
	}
	n.pages += pages
	n.unsettled += unsettled
}

// SettlePages is [docindex.PageCounter.SettlePages].
func (p *places) SettlePages(_ context.Context, crawl, taken string, free, stored []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.ofLocked(crawl)
	delete(c.takes, taken)
	if !c.known {
		if len(c.takes) == 0 { // nothing is known of it
			delete(p.crawls, crawl)
		}
		return nil
	}
	for _, domain := range free {
		c.bump(domain, -1, -1)
	}
	for _, domain := range stored {
		c.bump(domain, 0, -1)
	}
	return nil
}

// CountPages is [docindex.PageCounter.CountPages].
func (p *places) CountPages(_ context.Context, crawl, epoch string, pages int64, domains map[string]int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.ofLocked(crawl)
	if c.known || epoch != strconv.FormatUint(c.epoch, 10) {
		return nil
	}
	c.known, c.pages = true, pageCount{pages: pages}
	if domains != nil {
		c.domains = make(map[string]*pageCount, len(domains))
		for domain, n := range domains {
			c.domains[domain] = &pageCount{pages: n}
		}
	}
	return nil
}

// ForgetPages is [docindex.PageCounter.ForgetPages].
func (p *places) ForgetPages(_ context.Context, crawl string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.crawls[crawl]; c != nil {
		p.forgetLocked(c)
		if len(c.takes) == 0 {
			delete(p.crawls, crawl)
		}
	}
	return nil
}

// forgetLocked drops the counts of a crawl. CountPages ignores a count that had begun before.
func (p *places) forgetLocked(c *counted) {
	p.epoch++
	c.known, c.pages, c.domains, c.epoch = false, pageCount{}, nil, p.epoch
}
