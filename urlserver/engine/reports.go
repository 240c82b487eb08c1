package engine

import (
	"slices"
	"time"

	"urlserver/internal/container/dense"
)

const (
	groupCrawls = 1000             // that are told apart of a group
	crawlBatch  = 10 * groupCrawls // of all groups in one Claims
)

// HeldCount is how many documents the daemon holds for what a lease is for.
type HeldCount struct {
	Host      string
	Documents int
	Crawls    []CrawlPart // of them: those of other crawls than DEFAULT, each once; further ones are not told apart
}

// CrawlPart is how many of the documents are of a crawl.
type CrawlPart struct {
	Crawl     string
	Documents int
}

// reportedGroups is for what documents were told to be held.
type reportedGroups struct {
	byGroup dense.Array[string] // "": for nothing
	len     int
}

func (t *reportedGroups) of(group uint32) string {
	return t.byGroup.Get(group)
}

func (t *reportedGroups) set(group uint32, host string) {
	at := t.byGroup.At(group)
	if *at == "" {
		t.len++
	}
	*at = host
}

func (t *reportedGroups) drop(group uint32) {
	if t.of(group) != "" {
		*t.byGroup.At(group) = ""
		t.len--
	}
}

// gatherReports tells how many documents are held: of groups that are reserved for the first time or given back for good at
// once, of all others that have changed some times a lease.
func (e *Engine) gatherReports(c *LeaseBatch, due *waiter) {
	if !e.opt.Counted {
		return
	}
	for _, t := range c.Acquires {
		if e.leases.reporter.reported.of(t.group) != t.Host {
			e.reportGroup(c, t.group)
		}
	}
	for _, r := range c.Releases {
		if r.Delete {
			e.reportGroup(c, r.group)
		}
	}
	if e.leases.reporter.nextAt <= e.now {
		e.reportChanged(c)
	}
	if e.leases.reporter.reported.len > 0 || e.slots.Counts().Held > 0 {
		due.after(e.leases.reporter.nextAt - e.now)
	}
}

// reportChanged tells of some groups that have changed; the others are to follow at once.
func (e *Engine) reportChanged(c *LeaseBatch) {
	if len(e.leases.reporter.changed) == 0 {
		e.leases.reporter.changed = e.slots.ChangedGroups(e.leases.reporter.truncated)
		e.leases.reporter.truncated = nil
	}
	for n := 0; n < leaseBatch && len(e.leases.reporter.changed) > 0 && c.crawls <= crawlBatch-groupCrawls; n++ {
		e.reportGroup(c, e.leases.reporter.changed[0])
		e.leases.reporter.changed = e.leases.reporter.changed[1:]
	}
	if len(e.leases.reporter.changed) == 0 {
		e.leases.reporter.changed, e.leases.reporter.nextAt = nil, e.now+e.opt.Lease/reportsPerLease
	}
	for id := uint32(0); id < e.leases.reporter.reported.byGroup.Cap() && len(c.Reports) == 0; id++ {
		if e.leases.reporter.reported.of(id) != "" { // one, so that all go on to count
			e.reportGroup(c, id)
		}
	}
}

// reportGroup tells how many documents are held for a group.
func (e *Engine) reportGroup(c *LeaseBatch, group uint32) {
	was, is, n := e.leases.reporter.reported.of(group), "", e.slots.Group(group).Docs()
	if n > 0 {
		is = e.leaseHost(group)
		if was != is {
			e.leases.reporter.reported.set(group, is)
			e.leases.reporter.reporters[is] = group
		}
		c.Reports = append(c.Reports, HeldCount{is, n, e.crawlsOf(c, group)})
	} else {
		e.leases.reporter.reported.drop(group)
	}
	if was != "" && was != is && e.leases.reporter.reporters[was] == group {
		delete(e.leases.reporter.reporters, was)
		c.Reports = append(c.Reports, HeldCount{Host: was})
	}
}

// crawlsOf is how many of a group's documents are of which crawl, as far as c has room for that.
func (e *Engine) crawlsOf(c *LeaseBatch, group uint32) (parts []CrawlPart) {
	room := min(groupCrawls, crawlBatch-c.crawls)
	e.slots.Group(group).Crawls(room+1, func(crawl string, docs int) {
		if len(parts) < room {
			parts = append(parts, CrawlPart{crawl, docs})
		} else if room < groupCrawls {
			e.leases.reporter.truncated = append(e.leases.reporter.truncated, group)
		}
	})

	c.crawls += len(parts)
	return parts
}

// forgetReported forgets that it was told that documents of a group are held.
func (r *reporter) forget(group uint32) {
	if was := r.reported.of(group); r.reporters[was] == group {
		delete(r.reporters, was)
	}
	r.reported.drop(group)
}

// reportAllAgain has all be told anew, once each, however often that was wanted.
func (r *reporter) reportAllAgain(now time.Duration) {
	for id := range r.reported.byGroup.Cap() {
		if r.reported.of(id) != "" {
			r.changed = append(r.changed, id)
		}
	}
	slices.Sort(r.changed)
	r.changed = slices.Compact(r.changed)
	r.nextAt = now + leaseRetry
}
