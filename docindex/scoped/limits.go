package scoped

import (
	"context"
	"fmt"
	"time"

	"urlserver/docindex"
	"urlserver/internal/scope"
	"urlserver/internal/weburl"
)

// place is a place among the documents of a crawl that a put has reserved.
type place struct {
	c      *crawl // nil: the crawl has any number of documents
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
		for _, at := range places {
			at.settle()
		}
		freed := false
		for j, i := range granted {
			if places[j].c != nil && b.p.Verdict(i) != docindex.New {
				places[j].free()
				freed = true
			}
		}
		if err != nil {
			return err
		}
		if !freed {
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
	for _, i := range which {
		put, host := p.At(i)
		var at place
		if c := b.crawl(put.Crawl); c.limited() && put.Due != docindex.Never {
			if err := b.s.count(ctx, idOf(put.Crawl), c); err != nil {
				for _, old := range places {
					old.settle()
					old.free()
				}
				return nil, nil, nil, err
			}
			at.c = c
			if c.Scope.MaxPagesDomain > 0 {
				at.domain = weburl.Domain(string(host))
			}
			if !at.take() {
				waiting = append(waiting, i)
				continue
			}
		}
		granted, places = append(granted, i), append(places, at)
	}
	return granted, places, waiting, nil
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
	t.places++
	if p.domain != "" && t.domains != nil {
		t.domains[p.domain]++
	}
	return true
}

// settle says that the store has what was put for the place, or will not get it.
func (p place) settle() {
	if p.c == nil {
		return
	}
	p.c.tally.mu.Lock()
	p.c.tally.places--
	p.c.tally.mu.Unlock()
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
	if c.Scope.MaxPages > 0 && c.tally.taken >= c.Scope.MaxPages {
		return scope.Pages
	}
	return scope.PagesDomain
}

const (
	recountPause = 8           // how much longer than a count the time to the next one is
	recountMost  = time.Second // a count that takes longer is not repeated: a Put waits for it
)

// count makes sure that the numbers of a crawl's documents are known. It reads the counts of all
// its queues if domains are limited. In a shared store it counts again now and then, as other daemons
// put, too: while nothing is under way here, so that nothing counts twice.
func (s *Store) count(ctx context.Context, id string, c *crawl) error {
	t := c.tally
	began := time.Now()
	t.mu.Lock()
	if s.shared && t.places == 0 && !t.again.IsZero() && began.After(t.again) {
		t.counted, t.domains = false, nil
	}
	known := t.counted && (t.domains != nil || c.Scope.MaxPagesDomain == 0)
	t.mu.Unlock()
	if known {
		return nil
	}
	of := queuesOf(id)
	all, err := s.Store.Count(ctx, &of)
	if err != nil {
		return fmt.Errorf("count of crawl %.100q: %w", id, err)
	}
	var domains map[string]int64
	if c.Scope.MaxPagesDomain > 0 {
		if domains, err = s.countDomains(ctx, of); err != nil {
			return fmt.Errorf("domains of crawl %.100q: %w", id, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.counted {
		t.taken, t.counted = documents(all), true
	}
	if t.domains == nil {
		t.domains = domains
	}
	t.again = time.Time{}
	if took := time.Since(began); took < recountMost {
		t.again = time.Now().Add(recountPause * took)
	}
	return nil
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
		c.tally.forget()
	}
}

// recountAll forgets the numbers of all crawls' documents.
func (s *Store) recountAll() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.crawls {
		if c.limited() {
			c.tally.forget()
		}
	}
}

func (t *tally) forget() {
	t.mu.Lock()
	t.counted, t.domains = false, nil
	t.mu.Unlock()
}
