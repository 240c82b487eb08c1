package scoped

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"urlserver/docindex"
	"urlserver/internal/scope"
	"urlserver/internal/weburl"
)

const (
	placesBatch = 1000 // URLs that take places together

	firstPlacesLook   = 2 * time.Millisecond // between two looks for a place while others put
	longestPlacesLook = 500 * time.Millisecond
	placesWait        = 2 * time.Second // how long a put that finds no place tries again; its caller may repeat it

	settlePlaces = 5 * time.Second // how long settling places may take when the put's caller is gone
)

// putLimited stores URLs of which some belong to crawls with a limited number of documents.
func (b *batch) putLimited(ctx context.Context, p *docindex.Puts, which []int) error {
	for _, i := range which { // the verdicts of an earlier call do not count
		b.p.SetVerdict(i, docindex.Unsettled)
	}
	for some := range slices.Chunk(which, placesBatch) {
		if err := b.putPlaced(ctx, p, some); err != nil {
			return err
		}
	}
	return nil
}

// putPlaced takes a place for each URL of a crawl with a limited number of documents, and stores
// the URLs that found one. If the store turns out to know a URL, the URL's place is free again. So
// if a URL finds all places taken, some of them for URLs that are being put, it tries again when
// these are stored. A known URL needs no place, and does not wait. A put waits for a short time
// only, as others wait for it.
func (b *batch) putPlaced(ctx context.Context, p *docindex.Puts, which []int) error {
	pause, asked := firstPlacesLook, false
	var since time.Time // of the wait; zero: there is none
	for {
		r, err := b.reserve(ctx, p, which)
		err = errors.Join(err, b.putSome(ctx, p, r.granted))
		if err = errors.Join(err, b.settle(ctx, r.takes)); err == nil {
			err = b.full(ctx, p, r.full)
		}
		if err != nil || len(r.busy) == 0 {
			return err
		}
		if which = r.busy; !asked {
			asked = true
			if which, err = b.putKnown(ctx, p, r.busy); err != nil || len(which) == 0 {
				return err
			}
		}
		switch {
		case len(r.granted) > 0:
			since, pause = time.Time{}, firstPlacesLook
			continue
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= placesWait:
			return fmt.Errorf("put: other puts have the last places of a crawl and do not end, or its documents "+
				"cannot be counted: %w", docindex.ErrUnavailable)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPlacesLook)
	}
}

// putKnown stores the known ones of URLs, and returns the others.
func (b *batch) putKnown(ctx context.Context, p *docindex.Puts, which []int) (others []int, err error) {
	var known []int
	for _, i := range which {
		put, host := p.At(i)
		is, err := b.isKnown(ctx, &put, host)
		switch {
		case err != nil:
			return nil, err
		case is:
			known = append(known, i)
		default:
			others = append(others, i)
		}
	}
	return others, b.putSome(ctx, p, known)
}

// full stores those URLs without a place that are known, which changes no count. It refuses the
// others.
func (b *batch) full(ctx context.Context, p *docindex.Puts, which []*unplaced) error {
	var known []int
	for _, u := range which {
		put, host := p.At(u.i)
		is, err := b.isKnown(ctx, &put, host)
		switch {
		case err != nil:
			return err
		case is:
			known = append(known, u.i)
		default:
			b.outside(u.i, u.c, u.rule)
		}
	}
	return b.putSome(ctx, p, known)
}

// reserved is the result of reserve.
type reserved struct {
	takes   []take
	granted []int // they have places, or need none
	full    []*unplaced
	busy    []int // they may find places when other puts end
}

// take is the places that a put has taken of one crawl.
type take struct {
	c         *crawl
	crawl, id string
	which     []int    // URLs
	domains   []string // domains of these URLs
}

// unplaced is a URL that finds no place.
type unplaced struct {
	i    int
	c    *crawl
	rule scope.Rule
}

// reserve takes places for URLs. After an error r has the places that it has taken; the caller settles them.
func (b *batch) reserve(ctx context.Context, p *docindex.Puts, which []int) (r reserved, err error) {
	var crawls []take // id is not set
	of := map[string]int{}
	var last []byte // host
	var domain string
	for _, i := range which {
		put, host := p.At(i)
		c := b.crawl(put.Crawl)
		if !c.limited() || put.Due == docindex.Never {
			r.granted = append(r.granted, i)
			continue
		}
		id := idOf(put.Crawl)
		n, found := of[id]
		if !found {
			n = len(crawls)
			of[id], crawls = n, append(crawls, take{c: c, crawl: id})
		}
		if last == nil || !bytes.Equal(host, last) { // links of a page often have one host
			last, domain = host, weburl.Domain(string(host))
		}
		crawls[n].which = append(crawls[n].which, i)
		crawls[n].domains = append(crawls[n].domains, domain)
	}
	for _, t := range crawls {
		if err = b.reserveOf(ctx, &t, &r); err != nil {
			return reserved{takes: r.takes}, fmt.Errorf("places in crawl %.100q: %w", t.crawl, err)
		}
	}
	slices.Sort(r.granted)
	slices.SortFunc(r.full, func(a, b *unplaced) int { return cmp.Compare(a.i, b.i) })
	slices.Sort(r.busy)
	return r, nil
}

// reserveOf takes places of one crawl.
func (b *batch) reserveOf(ctx context.Context, t *take, r *reserved) error {
	got, err := b.s.takePages(ctx, t)
	if err != nil {
		return err
	}
	placed := take{crawl: t.crawl, id: got.ID}
	for j, i := range t.which {
		switch got.Limits[j] {
		case docindex.Placed:
			placed.which, placed.domains = append(placed.which, i), append(placed.domains, t.domains[j])
		case docindex.PlacesBusy:
			r.busy = append(r.busy, i)
		case docindex.CrawlFull:
			r.full = append(r.full, &unplaced{i, t.c, scope.Pages})
		case docindex.DomainFull:
			r.full = append(r.full, &unplaced{i, t.c, scope.PagesDomain})
		}
	}
	if r.granted = append(r.granted, placed.which...); placed.id != "" {
		r.takes = append(r.takes, placed)
	}
	return nil
}

// takePages takes places. If necessary it counts the documents of the crawl first. If others make
// it count again and again, it reports the places as busy.
func (s *Store) takePages(ctx context.Context, t *take) (got docindex.PlacesTaken, err error) {
	if err := s.forgetStale(ctx, t.crawl, t.c); err != nil {
		return got, err
	}
	for range 3 { // others may forget the counts in between
		if got, err = s.takeCounted(ctx, t); err != nil || !got.Uncounted {
			return got, err
		}
		if got, err = s.countPages(ctx, t); err != nil || !got.Uncounted {
			return got, err
		}
	}
	return docindex.PlacesTaken{Limits: slices.Repeat([]docindex.PageLimit{docindex.PlacesBusy}, len(t.domains))}, nil
}

// takeCounted takes places if the documents are counted.
func (s *Store) takeCounted(ctx context.Context, t *take) (docindex.PlacesTaken, error) {
	most, mostOfDomain := t.c.Scope.MaxPages, t.c.Scope.MaxPagesDomain
	if faulty(FaultPages) {
		most = 0
	}
	if faulty(FaultPerDomain) {
		mostOfDomain = 0
	}
	return s.pages.TakePages(ctx, t.crawl, t.domains, most, mostOfDomain)
}

// countPages counts the documents of a crawl, or takes places if another put has counted them
// meanwhile.
func (s *Store) countPages(ctx context.Context, t *take) (got docindex.PlacesTaken, err error) {
	select {
	case t.c.tally.counting <- struct{}{}:
		defer func() { <-t.c.tally.counting }()
	case <-ctx.Done():
		return got, ctx.Err()
	}
	if got, err = s.takeCounted(ctx, t); err != nil || !got.Uncounted {
		return got, err
	}
	all, ofDomains, err := s.countAll(ctx, t.crawl, t.c)
	if err == nil {
		err = s.pages.CountPages(ctx, t.crawl, got.Epoch, all, ofDomains)
	}
	return got, err
}

// settle settles places, also when the caller of the put is gone. Places that it cannot settle end
// by themselves after a while.
func (b *batch) settle(ctx context.Context, takes []take) (err error) {
	if len(takes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settlePlaces)
	defer cancel()
	for _, t := range takes {
		var free, stored []string
		sure := true
		for j, i := range t.which {
			switch b.p.Verdict(i) {
			case docindex.Unsettled: // it may be stored
				sure = false
			case docindex.New:
				stored = append(stored, t.domains[j])
			default:
				free = append(free, t.domains[j])
			}
		}
		if !sure {
			if one := b.s.pages.ForgetPages(ctx, t.crawl); one != nil {
				err = errors.Join(err, one)
				continue
			}
		}
		err = errors.Join(err, b.s.pages.SettlePages(ctx, t.crawl, t.id, free, stored))
	}
	return err
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

// countDomains counts the documents of a crawl by registered domain. If the key of a queue is a host
// name with a dot, as URLs have it, its documents are of the domain of that name. Else the documents
// are listed: clients may give keys that name no host.
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
		queue := docindex.Scope{Crawl: of.Crawl, Key: key}
		if isHostName(key) {
			var n docindex.Counts
			n, err = s.Store.Count(ctx, &queue)
			domains[weburl.Domain(string(key))] += documents(n)
			continue
		}
		err = s.listDomains(ctx, queue, domains)
	}
	return domains, err
}

// isHostName reports whether a key is a host name with a dot, as URLs have it, and no IP address.
func isHostName(key []byte) bool {
	_, err := netip.ParseAddr(string(key))
	return err != nil && bytes.IndexByte(key, '.') > 0 &&
		bytes.Equal(docindex.HostOf(append(append([]byte("http://"), key...), '/')), key)
}

// listDomains adds the documents of a queue to counts by registered domain. A list fails where URLs of
// the queue are purged meanwhile. listDomains then lists the queue again, three times in all. After
// that it fails, and the caller of the put may try again.
func (s *Store) listDomains(ctx context.Context, queue docindex.Scope, domains map[string]int64) (err error) {
	for range 3 {
		is := map[string]int64{}
		err = s.Store.List(ctx, queue, func(d *docindex.Document) bool {
			is[weburl.Domain(string(docindex.HostOf(d.URL)))]++
			return true
		})
		if err == nil {
			for domain, n := range is {
				domains[domain] += n
			}
			return nil
		}
		if !errors.Is(err, docindex.ErrListAgain) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", docindex.ErrUnavailable, err)
}

// recount makes the store count the documents of a crawl anew before it takes places.
func (s *Store) recount(crawl []byte) {
	if c := s.find(crawl); c != nil {
		c.tally.stale.Store(true)
	}
}

// recountOf calls recount for the crawls of puts.
func (s *Store) recountOf(p *docindex.Puts) {
	name, asked := "", false
	for i := range p.Len() {
		put, _ := p.At(i)
		if asked && name == string(put.Crawl) {
			continue
		}
		name, asked = string(put.Crawl), true
		if c := s.find(put.Crawl); c.limited() {
			c.tally.stale.Store(true)
		}
	}
}

// forgetStale forgets the numbers of a crawl's documents if they are stale.
func (s *Store) forgetStale(ctx context.Context, id string, c *crawl) error {
	if !c.tally.stale.Swap(false) {
		return nil
	}
	err := s.pages.ForgetPages(ctx, id)
	if err != nil {
		c.tally.stale.Store(true)
	}
	return err
}
