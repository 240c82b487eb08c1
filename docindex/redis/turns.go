package redis

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// turns decides which crawl goes next: of those that may be served the one that has had the
// fewest pages by its weight (start-time fair queueing, Goyal, Vin and Cheng 1996). Each daemon
// on one Redis counts what it hands out itself.
type turns struct {
	mu      sync.Mutex         // guards all below
	weights map[string]float64 // of crawls, unless 1
	sides   [2]crawlTurns
}

// Sides count their turns separately.
const (
	slotSide = iota // slots, of other daemons too
	callSide
)

// crawlTurns counts the pages that crawls have had, in pages of weight 1.
type crawlTurns struct {
	now   float64            // the count at which the last turn began; a crawl with a lower one counts from here
	had   map[string]float64 // counts by crawl; those of at most now may be missing
	sweep int                // with more counts than this, charge deletes those of at most now
}

const sweepCrawls = 1024

// setWeights sets the weights of all crawls by their settings.
func (t *turns) setWeights(texts map[string][]byte) {
	weights := map[string]float64{}
	for crawl, text := range texts {
		if crawl == docindex.DefaultCrawl {
			crawl = ""
		}
		if weight := embedded.WeightOf(text); weight != 1 {
			weights[crawl] = weight
		}
	}
	t.mu.Lock()
	t.weights = weights
	t.mu.Unlock()
}

// setWeight sets the weight of a crawl by its settings.
func (t *turns) setWeight(crawl string, text []byte) {
	if crawl == docindex.DefaultCrawl {
		crawl = ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	weights := maps.Clone(t.weights)
	if weights == nil {
		weights = map[string]float64{}
	}
	delete(weights, crawl)
	if weight := embedded.WeightOf(text); weight != 1 {
		weights[crawl] = weight
	}
	t.weights = weights
}

// pageLocked returns how many pages of weight 1 a page of a crawl counts as.
func (t *turns) pageLocked(crawl string) float64 {
	if weight, ok := t.weights[crawl]; ok {
		return 1 / weight
	}
	return 1
}

func (s *crawlTurns) of(crawl string) float64 { return max(s.now, s.had[crawl]) }

// charge counts pages that were handed out.
func (t *turns) charge(side int, pages []handed) {
	n := map[string]float64{}
	for _, p := range pages {
		n[p.crawl]++
	}
	if len(n) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.sides[side]
	if s.had == nil {
		s.had = map[string]float64{}
	}
	first := -1.0
	for crawl, n := range n {
		page := t.pageLocked(crawl)
		had := s.of(crawl) + n*page
		if s.had[crawl] = had; first < 0 || had-page < first {
			first = had - page
		}
	}
	s.now = max(s.now, first)
	if len(s.had) > max(s.sweep, sweepCrawls) {
		maps.DeleteFunc(s.had, func(_ string, had float64) bool { return had <= s.now })
		s.sweep = 2 * len(s.had)
	}
}

// sort orders the queues that a client may be given by the turns of their crawls. Queues of one
// crawl keep their order.
func (t *turns) sort(list []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	had := map[string]float64{}
	for i := range list {
		e := &list[i]
		at, known := had[e.crawl]
		if !known {
			at = t.sides[callSide].of(e.crawl)
		}
		e.turn, had[e.crawl] = at, at+float64(e.can)*t.pageLocked(e.crawl)
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		if a.begun != b.begun {
			return boolean(b.begun) - boolean(a.begun)
		}
		return cmp.Compare(a.turn, b.turn)
	})
}

// share is the queues of a crawl while documents are dealt out to the slots.
type share struct {
	had, page float64
	queues    []*entry
	next      int
}

// deal deals documents of queues out to the slots, limit in all, crawl by crawl and queue by queue.
// It calls take for each document of a queue; take returns false if the queue has had all.
func (t *turns) deal(list []entry, limit int, take func(*entry) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*share
	of := map[string]*share{}
	for i := range list {
		crawl := list[i].crawl
		one := of[crawl]
		if one == nil {
			one = &share{had: t.sides[slotSide].of(crawl), page: t.pageLocked(crawl)}
			of[crawl], all = one, append(all, one)
		}
		one.queues = append(one.queues, &list[i])
	}
	for limit > 0 && len(all) > 0 {
		at := 0
		for i, one := range all {
			if one.had < all[at].had {
				at = i
			}
		}
		if one := all[at]; one.deal(take) {
			one.had += one.page
			limit--
		} else {
			all = slices.Delete(all, at, at+1)
		}
	}
}

// deal deals out a document of the next queue. It returns false if all queues have had all.
func (s *share) deal(take func(*entry) bool) bool {
	for len(s.queues) > 0 {
		s.next %= len(s.queues)
		if take(s.queues[s.next]) {
			s.next++
			return true
		}
		s.queues = slices.Delete(s.queues, s.next, s.next+1)
	}
	return false
}
