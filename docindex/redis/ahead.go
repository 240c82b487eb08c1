package redis

import "urlserver/docindex"

// held has the page counts of the crawl and the domain of a document that this daemon's slots have.
type held struct {
	c *crawlShare
	d *domainShare
}

// SetAhead is [docindex.Hooks.SetAhead]. Of a queue whose links take turns, the documents at the
// slots of all daemons count together. Of a domain each daemon counts the documents at its own
// slots, if there is a budget.
func (s *Store) SetAhead(to docindex.Ahead) {
	s.budgets.mu.Lock()
	defer s.budgets.mu.Unlock()
	s.budgets.ahead = to
}

// roomAheadLocked returns how many more documents of a domain the slots may have.
func (b *budgets) roomAheadLocked(c *crawlShare, d *domainShare) int {
	most := b.ahead.Domain
	if c.left(d) > 0 {
		most = b.ahead.Waiting
	}
	if most <= 0 {
		return takeBatch
	}
	return most - d.atSlots
}

// most returns the bounds that SetAhead has set.
func (b *budgets) most() docindex.Ahead {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ahead
}

// slotsHave returns how many documents of a domain this daemon's slots have.
func (b *budgets) slotsHave(crawl, domain string) uint32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.crawls[crawl]; c != nil && c.domains[domain] != nil {
		return uint32(c.domains[domain].atSlots)
	}
	return 0
}

// aheadOfLocked returns how many documents of a domain a call for slots may take. Only this
// daemon's slots have a bound, leases to other daemons have none.
func (b *budgets) aheadOfLocked(c *crawlShare, d *domainShare, t *taking) int {
	if t.lease != "" {
		return takeBatch
	}
	return b.roomAheadLocked(c, d)
}

// take records a document that the slots of this daemon get.
func (b *budgets) take(crawl, domain, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages == 0 {
		return
	}
	if _, is := b.atSlots[id]; is {
		return
	}
	if b.atSlots == nil {
		b.atSlots = map[string]held{}
	}
	c, d := b.ofLocked(crawl, domain)
	d.atSlots++
	b.atSlots[id] = held{c, d}
}

// release records that this daemon's slots no longer have the documents. room reports whether the
// slots may now have more of a domain of which they had enough.
func (b *budgets) release(o *docindex.Outcomes) (room bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := 0; i < o.Len() && len(b.atSlots) > 0; i++ {
		id := o.At(i).DocID
		one, is := b.atSlots[string(id)]
		if !is {
			continue
		}
		room = room || b.roomAheadLocked(one.c, one.d) <= 0
		one.d.atSlots--
		delete(b.atSlots, string(id))
	}
	return room
}

// released calls release, and wakes the slots if they may have other documents now.
func (s *Store) released(o *docindex.Outcomes) {
	if s.budgets.release(o) {
		s.wake()
	}
}
