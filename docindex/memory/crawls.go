package memory

import (
	"context"
	"time"

	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/embedded"

	"urlserver/docindex"
)

var _ docindex.Crawls = (*Store)(nil)

// joinCrawlLocked makes a document a member of the crawl that it names. The document is completed
// or not scheduled yet.
func (m *Store) joinCrawlLocked(id uint32, p *docindex.Put) {
	crawl, _, ok := docindex.CrawlOf(p)
	old := m.crawls.crawlOf(id)
	if old != nil {
		if ok && old.ID == crawl {
			return
		}
		m.crawls.leave(id, m.docs.records.At(id).priority)
	}
	if !ok {
		return
	}
	host := docindex.HostOf(p.URL)
	if len(host) == 0 {
		host = m.base.Sched.Key(m.docs.records.At(id).queue)
	}
	m.crawls.join(id, crawl, string(host))
}

// setExpiryLocked sets when the crawl of a document expires, if the Put says so.
func (m *Store) setExpiryLocked(id uint32, p *docindex.Put) {
	crawl, expires, ok := docindex.ExpiryOf(p)
	if b := m.crawls.crawlOf(id); ok && b != nil && b.ID == crawl {
		m.crawls.ExpireAt(b, expires)
	}
}

// trackCrawlLocked counts the new state of a document in its crawl.
func (m *Store) trackCrawlLocked(id uint32, r *record) {
	if len(m.crawls.members) == 0 {
		return
	}
	to := crawlstats.Completed
	switch {
	case r.state() == docindex.Scheduled:
		to = crawlstats.Scheduled
	case r.state() == docindex.InTransit && r.flags&viaFrontier != 0:
		to = crawlstats.InClients
	case r.state() == docindex.InTransit:
		to = crawlstats.InSlots
	}
	m.crawls.move(id, to, r.priority, m.base.Now())
}

// droppedLocked reports whether a URL belongs to a stopped crawl. A known document that the Put
// schedules again is completed.
func (m *Store) droppedLocked(p *docindex.Put, known uint32, now int64) bool {
	if m.crawls.Stopped() == 0 || known != 0 && p.Update && p.Due == docindex.Never {
		return false
	}
	id, _, ok := docindex.CrawlOf(p)
	b := m.crawls.Find(id)
	if !ok || b == nil || !b.Stopped {
		return false
	}
	b.Dropped++
	if known != 0 && p.Update {
		m.noteReportLocked(known, true, now)
		m.completeLocked(known, now)
	}
	return true
}

// StopCrawl is [docindex.Crawls.StopCrawl].
func (m *Store) StopCrawl(ctx context.Context, id docindex.CrawlID, why docindex.Kind) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	b := m.crawls.Find(id)
	switch {
	case b != nil && b.Stopped:
		return nil
	case m.crawls.Stopped() >= embedded.MaxStopped:
		return docindex.ErrTooManyStopped
	}
	m.crawls.Stop(m.crawls.Open(id), why)
	return nil
}

// purgeLocked ends a scheduled document of a stopped crawl.
func (m *Store) purgeLocked(id uint32, now int64) {
	m.countPurgedLocked(id, now)
	m.completeLocked(id, now)
}

// countPurgedLocked counts a document that ends because its crawl was stopped, and sets its last
// outcome.
func (m *Store) countPurgedLocked(id uint32, now int64) {
	b := m.crawls.crawlOf(id)
	b.Unreported++
	m.crawls.markPurged(id)
	m.outcomes[b.Why]++
	r := m.docs.records.At(id)
	r.setLast(embedded.LastOfKind(b.Why, now))
	m.docs.dropPayload(r)
}

// PurgeCrawl is [docindex.Crawls.PurgeCrawl]. It ends the documents in portions and releases the
// lock after each.
func (m *Store) PurgeCrawl(
	ctx context.Context, id docindex.CrawlID, tell func(*docindex.Outcomes) (int, error),
) (purged int, err error) {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		more = m.purgeScheduled(id)
	}
	var out docindex.Outcomes
	for left := m.countInSlots(id); left > 0; left -= embedded.LockBatch {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		out.Reset()
		m.someInSlots(id, min(left, embedded.LockBatch), &out)
		ended, err := tell(&out)
		m.addPurged(id, ended)
		if err != nil {
			return 0, err
		}
	}
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	if b := m.crawls.Find(id); b != nil && b.Stopped {
		return m.crawls.ReportPurged(b), nil
	}
	return 0, nil
}

// addPurged counts n documents of a stopped crawl whose outcomes come later.
func (m *Store) addPurged(id docindex.CrawlID, n int) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	if b := m.crawls.Find(id); b != nil {
		b.Unreported += n
	}
}

func (m *Store) purgeScheduled(id docindex.CrawlID) (more bool) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	b := m.crawls.Find(id)
	if b == nil || !b.Stopped {
		return false
	}
	now := m.base.Now()
	for n := 0; n < embedded.LockBatch && b.Count[crawlstats.Scheduled] > 0; n++ {
		m.purgeLocked(m.crawls.first(b, crawlstats.Scheduled), now)
	}
	return b.Count[crawlstats.Scheduled] > 0
}

func (m *Store) countInSlots(id docindex.CrawlID) int {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	if b := m.crawls.Find(id); b != nil {
		return int(b.Count[crawlstats.InSlots])
	}
	return 0
}

// someInSlots appends up to n documents that the slots have, and moves each to the end of their
// list.
func (m *Store) someInSlots(id docindex.CrawlID, n int, out *docindex.Outcomes) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	b := m.crawls.Find(id)
	if b == nil {
		return
	}
	for range n {
		doc := m.crawls.first(b, crawlstats.InSlots)
		if doc == 0 {
			return
		}
		one := &m.crawls.members[doc]
		m.crawls.unlink(b, one)
		m.crawls.link(b, doc, one)
		var name [20]byte // a uint64 in decimal
		out.Add(docindex.Outcome{DocID: m.docs.docID(name[:0], doc),
			URL: m.docs.url(m.docs.records.At(doc)), Kind: b.Why})
	}
}

// CrawlsToEnd is [docindex.Crawls.CrawlsToEnd].
func (m *Store) CrawlsToEnd(_ context.Context, now time.Time, max int) ([]docindex.CrawlEnd, error) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	return m.crawls.ToEnd(now, max), nil
}

// AckCrawlEnd is [docindex.Crawls.AckCrawlEnd].
func (m *Store) AckCrawlEnd(_ context.Context, id docindex.CrawlID, round uint64) error {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	if b := m.crawls.Find(id); b != nil {
		b.AckEnd(round)
	}
	return nil
}

// ReportPending is [docindex.Crawls.ReportPending].
func (m *Store) ReportPending(
	ctx context.Context, id docindex.CrawlID, domains int, away *docindex.Outcomes,
) (docindex.PendingReport, error) {
	if err := ctx.Err(); err != nil {
		return docindex.PendingReport{}, err
	}
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	v := m.crawls.BeginReport(id, domains)
	for i := 0; away != nil && i < away.Len() && v.MayHaveInFlight(); i++ {
		o := away.At(i)
		doc := m.docs.findID(o.DocID)
		d := m.crawls.domainOf(doc)
		if d == nil || !v.Wants(d) || m.crawls.members[doc].place != crawlstats.InSlots {
			continue
		}
		if r := m.docs.records.At(doc); o.IsOf(m.docs.url(r)) {
			v.InFlight(d, r.priority)
		}
	}
	return v.End(), nil
}

// forgetInSlotsLocked calls Forget with the documents of a dropped queue that the slots have. It
// releases the lock during the calls; a dropped queue does not change.
func (m *Store) forgetInSlotsLocked(queue uint32) {
	if m.base.Forget == nil {
		return
	}
	var out docindex.Outcomes
	tell := func() {
		if out.Len() > 0 {
			m.base.Mu.Unlock()
			m.base.Forget(&out)
			m.base.Mu.Lock()
		}
		out.Reset()
	}
	seen := 0
	for id := m.orders[queue].first; id != 0; seen++ {
		r := m.docs.records.At(id)
		if r.state() == docindex.InTransit && r.flags&viaFrontier == 0 {
			var name [20]byte // a uint64 in decimal
			out.Add(docindex.Outcome{DocID: m.docs.docID(name[:0], id), URL: m.docs.url(r)})
		}
		id = r.sibling
		if out.Len() == embedded.LockBatch {
			tell()
		} else if seen%embedded.LockBatch == embedded.LockBatch-1 {
			m.base.Mu.Unlock()
			m.base.Mu.Lock()
		}
	}
	tell()
}
