package scoped

import (
	"context"
	"errors"
	"fmt"

	"urlserver/docindex"
	"urlserver/internal/scope"
	"urlserver/internal/weburl"
)

// place is a place among the documents of a crawl that a put has reserved.
type place struct {
	c      *crawl // nil: the crawl has any number of documents
	id     string // of the crawl
	domain string // "": its domain has any number of documents
}

// putLimited stores URLs of which some belong to crawls with a limited number of documents. It
// reserves a place for each of those. A place whose URL turns out to be known is free again, so the
// URLs that found none try once more, until no place becomes free.
func (b *batch) putLimited(ctx context.Context, p *docindex.Puts, which []int) error {
	for len(which) > 0 {
		granted, places, waiting, err := b.reserve(ctx, p, which)
		if err != nil {
			return err
		}
		err = b.putSome(ctx, p, granted)
		var free []place
		for j, i := range granted {
			switch at := places[j]; {
			case at.c == nil || b.p.Verdict(i) == docindex.New:
			case b.s.pages != nil && b.p.Verdict(i) == docindex.Unsettled: // it may be stored
				at.c.tally.recount()
			default:
				free = append(free, at)
			}
		}
		if err := errors.Join(err, b.s.free(ctx, free)); err != nil {
			return err
		}
		if len(free) == 0 {
			return b.full(ctx, p, waiting)
		}
		which = waiting
	}
	return nil
}

// full deals with URLs that found no place: those that are known are stored, which changes no count.
func (b *batch) full(ctx context.Context, p *docindex.Puts, which []int) error {
	var known []int
	for _, i := range which {
		put, host := p.At(i)
		is, err := b.isKnown(ctx, &put, host)
		switch c := b.crawl(put.Crawl); {
		case err != nil:
			return err
		case is:
			known = append(known, i)
		default:
			b.outside(i, c, c.fullRule())
		}
	}
	return b.putSome(ctx, p, known)
}

// reserve reserves places for URLs, in their order. waiting are those that found none.
func (b *batch) reserve(ctx context.Context, p *docindex.Puts, which []int) (
	granted []int, places []place, waiting []int, err error,
) {
	all := make([]place, len(which))
	for j, i := range which {
		put, host := p.At(i)
		if c := b.crawl(put.Crawl); c.limited() && put.Due != docindex.Never {
			all[j] = place{c: c, id: idOf(put.Crawl)}
			if c.Scope.MaxPagesDomain > 0 {
				all[j].domain = weburl.Domain(string(host))
			}
		}
	}
	got, err := b.s.take(ctx, all)
	if err != nil {
		return nil, nil, nil, err
	}
	for j, i := range which {
		if got[j] {
			granted, places = append(granted, i), append(places, all[j])
		} else {
			waiting = append(waiting, i)
		}
	}
	return granted, places, waiting, nil
}

// take takes places, as far as there are some. After an error it has taken none.
func (s *Store) take(ctx context.Context, places []place) (got []bool, err error) {
	got = make([]bool, len(places))
	var mine []place
	if s.pages != nil {
		mine, err = s.takeShared(ctx, places, got)
	} else {
		for j, at := range places {
			if at.c != nil && err == nil {
				err = s.count(ctx, at.id, at.c)
			}
			if got[j] = at.c == nil || err == nil && at.take(); got[j] {
				mine = append(mine, at)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.free(ctx, mine))
	}
	return got, nil
}

// takeShared takes places from a store that counts for several daemons. It returns those that it has
// taken, and sets got of these and of those without a limit.
func (s *Store) takeShared(ctx context.Context, places []place, got []bool) (mine []place, err error) {
	for id, which := range byCrawl(places) {
		if id == "" {
			for _, j := range which {
				got[j] = true
			}
			continue
		}
		limits, err := s.takePages(ctx, places, which)
		if err != nil {
			return mine, fmt.Errorf("places in crawl %.100q: %w", id, err)
		}
		full := false
		for n, j := range which {
			if got[j] = limits[n] == docindex.Placed; got[j] {
				mine = append(mine, places[j])
			}
			full = full || limits[n] == docindex.CrawlFull
		}
		t := places[which[0]].c.tally
		t.mu.Lock()
		t.full = full
		t.mu.Unlock()
	}
	return mine, nil
}

// byCrawl returns the indexes of places by the IDs of their crawls; "": those without a limit.
func byCrawl(places []place) map[string][]int {
	of := map[string][]int{}
	for j, at := range places {
		of[at.id] = append(of[at.id], j)
	}
	return of
}

// takePages takes places of one crawl. It counts the documents first if need be.
func (s *Store) takePages(ctx context.Context, places []place, which []int) ([]docindex.PageLimit, error) {
	c, id := places[which[0]].c, places[which[0]].id
	if c.tally.takeStale() {
		if err := s.pages.ForgetPages(ctx, id); err != nil {
			c.tally.recount()
			return nil, err
		}
	}
	domains := domainsOf(places, which)
	for range 3 { // others may forget them between
		limits, counted, err := s.pages.TakePages(ctx, id, domains, c.Scope.MaxPages, c.Scope.MaxPagesDomain)
		if err != nil || counted {
			return limits, err
		}
		all, ofDomains, err := s.countAll(ctx, id, c)
		if err == nil {
			err = s.pages.CountPages(ctx, id, all, ofDomains)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("its documents cannot be counted")
}

func domainsOf(places []place, which []int) (domains []string) {
	for _, j := range which {
		domains = append(domains, places[j].domain)
	}
	return domains
}

// free frees places.
func (s *Store) free(ctx context.Context, places []place) (err error) {
	if s.pages == nil {
		for _, at := range places {
			at.free()
		}
		return nil
	}
	for id, which := range byCrawl(places) {
		if id != "" {
			err = errors.Join(err, s.pages.FreePages(ctx, id, domainsOf(places, which)))
		}
	}
	return err
}

// take takes the place, if the crawl and the domain have one.
func (p place) take() bool {
	t, s := p.c.tally, &p.c.Scope
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.MaxPages > 0 && t.taken >= s.MaxPages && !faulty(faultPages) ||
		p.domain != "" && t.domains[p.domain] >= s.MaxPagesDomain && !faulty(faultPerDomain) {
		return false
	}
	t.taken++
	if p.domain != "" && t.domains != nil {
		t.domains[p.domain]++
	}
	return true
}

func (p place) free() {
	if p.c == nil {
		return
	}
	t := p.c.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	if p.domain != "" && t.domains != nil {
		t.domains[p.domain]--
	}
}

// fullRule returns the rule by which a URL finds no place.
func (c *crawl) fullRule() scope.Rule {
	c.tally.mu.Lock()
	defer c.tally.mu.Unlock()
	if c.Scope.MaxPages > 0 && (c.tally.taken >= c.Scope.MaxPages || c.tally.full) {
		return scope.Pages
	}
	return scope.PagesDomain
}

// count makes sure that the numbers of a crawl's documents are known.
func (s *Store) count(ctx context.Context, id string, c *crawl) error {
	t := c.tally
	t.mu.Lock()
	known := t.counted && (t.domains != nil || c.Scope.MaxPagesDomain == 0)
	t.mu.Unlock()
	if known {
		return nil
	}
	all, domains, err := s.countAll(ctx, id, c)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.counted {
		t.taken, t.counted = all, true
	}
	if t.domains == nil {
		t.domains = domains
	}
	return nil
}

// countAll counts the documents of a crawl, and those of each domain if domains are limited. Then it
// reads the counts of all queues of the crawl.
func (s *Store) countAll(ctx context.Context, id string, c *crawl) (
	pages int64, domains map[string]int64, err error,
) {
	of := queuesOf(id)
	all, err := s.Store.Count(ctx, &of)
	if err != nil {
		return 0, nil, fmt.Errorf("count of crawl %.100q: %w", id, err)
	}
	if c.Scope.MaxPagesDomain > 0 {
		if domains, err = s.countDomains(ctx, of); err != nil {
			return 0, nil, fmt.Errorf("domains of crawl %.100q: %w", id, err)
		}
	}
	return documents(all), domains, nil
}

func documents(n docindex.Counts) int64 { return int64(n.Scheduled + n.InTransit + n.Completed) }

// countDomains counts the documents of a crawl by registered domain. The documents of a queue count
// for the domain of its key.
func (s *Store) countDomains(ctx context.Context, of docindex.Scope) (map[string]int64, error) {
	var keys [][]byte
	err := s.Store.Queues(ctx, of.Crawl, func(key []byte, _ bool) bool {
		keys = append(keys, append([]byte(nil), key...))
		return true
	})
	domains := map[string]int64{}
	for _, key := range keys {
		if err != nil {
			break
		}
		var n docindex.Counts
		n, err = s.Store.Count(ctx, &docindex.Scope{Crawl: of.Crawl, Key: key})
		domains[weburl.Domain(string(key))] += documents(n)
	}
	return domains, err
}

// recount forgets the numbers of a crawl's documents.
func (s *Store) recount(crawl []byte) {
	if c := s.find(crawl); c != nil {
		c.tally.recount()
	}
}

// recountAll forgets the numbers of all crawls' documents.
func (s *Store) recountAll() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.crawls {
		if c.limited() {
			c.tally.recount()
		}
	}
}

func (t *tally) forget() {
	t.mu.Lock()
	t.counted, t.domains = false, nil
	t.mu.Unlock()
}

// recount is forget, and what a shared store has counted is to be forgotten, too.
func (t *tally) recount() {
	t.forget()
	t.mu.Lock()
	t.stale = true
	t.mu.Unlock()
}

// takeStale reports whether what a shared store has counted is to be forgotten, once.
func (t *tally) takeStale() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	stale := t.stale
	t.stale = false
	return stale
}
