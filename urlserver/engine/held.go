package engine

import (
	"slices"

	"urlserver/internal/container/dense"
)

const (
	groupCrawls = 1000             // that are told apart of a group
	crawlBatch  = 10 * groupCrawls // of all groups in one Claims
)

// Held is how many documents the daemon holds for what a lease is for.
type Held struct {
	Host      string
	Documents int
	Crawls    []CrawlPart // of them: those of other crawls than DEFAULT, each once; further ones are not told apart
}

// CrawlPart is how many of the documents are of a crawl.
type CrawlPart struct {
	Crawl     string
	Documents int
}

// told is for what documents were told to be held.
type told struct {
	byGroup dense.Array[string] // "": for nothing
	len     int
}

func (t *told) of(group uint32) string {
	return t.byGroup.Get(group)
}

func (t *told) set(group uint32, host string) {
	at := t.byGroup.At(group)
	if *at == "" {
		t.len++
	}
	*at = host
}

func (t *told) drop(group uint32) {
	if t.of(group) != "" {
		*t.byGroup.At(group) = ""
		t.len--
	}
}

// gatherHeld tells how many documents are held: of groups that are reserved for the first time or given back for good at
// once, of all others that have changed some times a lease.
func (e *Engine) gatherHeld(c *Claims, due *waiter) {
	if !e.opt.Counted {
		return
	}
	for _, t := range c.Tries {
		if e.claims.told.of(t.group) != t.Host {
			e.tell(c, t.group)
		}
	}
	for _, r := range c.Releases {
		if r.Delete {
			e.tell(c, r.group)
		}
	}
	if e.claims.tellAt <= e.now {
		e.tellChanged(c)
	}
	if e.claims.told.len > 0 || e.slots.Counts().Held > 0 {
		due.after(e.claims.tellAt - e.now)
	}
}

// tellChanged tells of some groups that have changed; the others are to follow at once.
func (e *Engine) tellChanged(c *Claims) {
	if len(e.claims.changed) == 0 {
		e.claims.changed = e.slots.ChangedGroups(e.claims.partly)
		e.claims.partly = nil
	}
	for n := 0; n < claimBatch && len(e.claims.changed) > 0 && c.crawls <= crawlBatch-groupCrawls; n++ {
		e.tell(c, e.claims.changed[0])
		e.claims.changed = e.claims.changed[1:]
	}
	if len(e.claims.changed) == 0 {
		e.claims.changed, e.claims.tellAt = nil, e.now+e.opt.Lease/tellsALease
	}
	for id := uint32(0); id < e.claims.told.byGroup.Cap() && len(c.Held) == 0; id++ {
		if e.claims.told.of(id) != "" { // one, so that all go on to count
			e.tell(c, id)
		}
	}
}

// tell tells how many documents are held for a group.
func (e *Engine) tell(c *Claims, group uint32) {
	was, is, n := e.claims.told.of(group), "", e.slots.Group(group).Docs()
	if n > 0 {
		is = e.leaseHost(group)
		if was != is {
			e.claims.told.set(group, is)
			e.claims.tellers[is] = group
		}
		c.Held = append(c.Held, Held{is, n, e.crawlsOf(c, group)})
	} else {
		e.claims.told.drop(group)
	}
	if was != "" && was != is && e.claims.tellers[was] == group {
		delete(e.claims.tellers, was)
		c.Held = append(c.Held, Held{Host: was})
	}
}

// crawlsOf is how many of a group's documents are of which crawl, as far as c has room for that.
func (e *Engine) crawlsOf(c *Claims, group uint32) (parts []CrawlPart) {
	room := min(groupCrawls, crawlBatch-c.crawls)
	e.slots.Group(group).Crawls(room+1, func(crawl string, docs int) {
		if len(parts) < room {
			parts = append(parts, CrawlPart{crawl, docs})
		} else if room < groupCrawls {
			e.claims.partly = append(e.claims.partly, group)
		}
	})

	c.crawls += len(parts)
	return parts
}

// untell forgets that it was told that documents of a group are held.
func (e *Engine) untell(group uint32) {
	if was := e.claims.told.of(group); e.claims.tellers[was] == group {
		delete(e.claims.tellers, was)
	}
	e.claims.told.drop(group)
}

// tellAgain has all be told anew, once each, however often that was wanted.
func (e *Engine) tellAgain() {
	for id := range e.claims.told.byGroup.Cap() {
		if e.claims.told.of(id) != "" {
			e.claims.changed = append(e.claims.changed, id)
		}
	}
	slices.Sort(e.claims.changed)
	e.claims.changed = slices.Compact(e.claims.changed)
	e.claims.tellAt = e.now + claimRetry
}
