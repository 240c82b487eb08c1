package engine

import (
	"slices"
	"time"

	"urlserver/internal/container/dense"
)

const (
	groupCrawls = 1000             // the most crawls of a group that a report names
	crawlBatch  = 10 * groupCrawls // the most crawls of all groups that one batch names
)

// HeldCount is how many documents the daemon holds under one lease host.
type HeldCount struct {
	Host      string
	Documents int
	Crawls    []CrawlPart // the parts of named crawls, each once; at most groupCrawls
}

// CrawlPart is how many of the documents belong to one crawl.
type CrawlPart struct {
	Crawl     string
	Documents int
}

// reportedGroups maps each group to the lease host under which its documents were last reported.
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

// gatherReports puts document counts into c: at once for groups that are leased for the first time
// or released for good, and reportsPerLease times per lease for all others that have changed.
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

// reportChanged reports some groups that have changed. The others follow with the next batches.
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

// reportGroup reports how many documents of a group are held.
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

// crawlsOf returns how many documents of the group belong to which crawl, as far as c has room.
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

// forget forgets that documents of a group were reported.
func (r *reporter) forget(group uint32) {
	if was := r.reported.of(group); r.reporters[was] == group {
		delete(r.reporters, was)
	}
	r.reported.drop(group)
}

// reportAllAgain queues a new report of every reported group, one each however often it is called.
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
