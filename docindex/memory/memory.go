// Package memory is the [docindex.Store] that keeps everything in RAM.
package memory

import (
	"context"
	"fmt"
	"math"
	"time"

	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
	"urlserver/docindex/internal/shapes"
	"urlserver/internal/container/hashindex"

	"urlserver/docindex"
)

// Store is the [docindex.Store] that keeps everything in RAM: about 170 bytes for a URL of 70
// bytes, without pointers for the garbage collector. Queues take turns at the slots with one
// document each.
//
// If a client gives no DOC_ID, it is the number of the document, from 1 on. The store reuses the
// numbers of removed documents. A client may give any other DOC_ID, also such a number: a later
// document that would get the number then gets one above 2^32.
//
// An outcome counts for a document only if it names the document's URL or none. So the outcome of a
// document that was handed out before a restart completes no other document. While one consumer has
// URLs of a host, the other consumers get none of it.
//
// A Store is safe for concurrent use.
type Store struct {
	embedded.Contract
	base embedded.Base // its lock guards all below

	docs     *documentTable
	orders   []queueOrder // by queue
	branches shapes.Tables[order]
	seq      uint32
	outcomes [docindex.Kinds]int
	crawls   crawlMembers
	purges   int   // documents of stopped crawls that pickLocked may still end under this lock
	limit    int64 // bytes in use from which on no document is added
	notes    notes // with a lock of its own
}

var _ docindex.Store = (*Store)(nil)

// New returns an empty store that grows without a limit of its own.
func New() *Store { return NewLimited(math.MaxInt64) }

// NewLimited returns an empty store that adds no document while it takes limit bytes or more, the
// garbage collector's share included.
func NewLimited(limit int64) *Store {
	m := &Store{docs: newDocumentTable(), crawls: newCrawlMembers(), limit: limit}
	m.base.Init((*body)(m), m.crawls.Stats)
	m.Contract = m.base.Contract()
	return m
}

// SetClock replaces the clock before the store is used: elapsed returns the time since the store was
// made, and never goes back. It is for simulations.
func (m *Store) SetClock(elapsed func() time.Duration) { m.base.SetClock(elapsed) }

// body makes a Store an [embedded.Body].
type body Store

func (*body) UsableLocked() error { return nil }

func (m *body) LeaseEndedLocked(id uint32, now int64) {
	(*Store)(m).finishLocked(id, docindex.Scheduled, now)
}

// TotalsLocked is [embedded.Body.TotalsLocked].
func (m *body) TotalsLocked() (outcomes [docindex.Kinds]int, bytes int64) {
	return m.outcomes, (*Store)(m).usedLocked()
}

// Put is [docindex.Putter.Put].
func (m *Store) Put(ctx context.Context, p *docindex.Puts) (res docindex.PutResult, err error) {
	scheduled := false
	for i := 0; i < p.Len() && err == nil; i += embedded.LockBatch {
		if err = ctx.Err(); err == nil {
			var some bool
			some, err = m.putSome(p, i, min(i+embedded.LockBatch, p.Len()), &res)
			scheduled = scheduled || some
		}
	}
	if scheduled {
		m.base.Wake()
	} else {
		m.base.WakeForRoom()
	}
	return res, err
}

// putSome stores some URLs. Without room for the new ones it stores the others and returns an
// error.
func (m *Store) putSome(
	p *docindex.Puts, from, to int, res *docindex.PutResult,
) (scheduled bool, full error) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	now := m.base.Now()
	for i := from; i < to; i++ {
		put, host := p.At(i)
		verdict, err := m.putLocked(&put, host, now)
		p.SetVerdict(i, verdict)
		switch verdict {
		case docindex.Unsettled:
			full = m.fullLocked()
			continue
		case docindex.Refused:
			res.Refused = append(res.Refused, docindex.Refusal{Index: i, Err: err})
			continue
		case docindex.New:
			res.New++
		case docindex.Dropped:
			res.Dropped++
		default:
			res.Known++
		}
		scheduled = scheduled || (verdict == docindex.New || verdict == docindex.Changed) && put.Due != docindex.Never
	}
	return scheduled, full
}

func (m *Store) putLocked(p *docindex.Put, host []byte, now int64) (docindex.Verdict, error) {
	key := p.Key
	if len(key) == 0 {
		key = host
	}
	queue := m.base.Sched.Find(p.Crawl, key)
	known := m.findLocked(queue, p)
	if len(p.DocID) > 0 {
		if id := m.docs.findID(p.DocID); id != 0 && id != known {
			return docindex.Refused, fmt.Errorf("doc_id %q: taken by %.200s", p.DocID,
				m.docs.url(m.docs.records.At(id)))
		}
	}
	if p.Update && m.base.Sched.HasOrphans() {
		m.base.Sched.Reported(host, p.URL, now)
	}
	if known != 0 {
		m.settleUpdateLocked(known, p, now)
	}
	switch {
	case m.droppedLocked(p, known, now):
		return docindex.Dropped, nil
	case known != 0 && p.Update:
		m.updateLocked(known, p, now)
		m.setExpiryLocked(known, p)
		return docindex.Changed, nil
	case known != 0:
		m.setExpiryLocked(known, p)
		return docindex.Same, nil
	case m.fullLocked() != nil:
		return docindex.Unsettled, nil
	}
	if queue == 0 {
		queue = m.base.Sched.Add(p.Crawl, key, host, now)
	} else {
		m.base.Sched.NoteHost(queue, host, now)
	}
	m.insertLocked(queue, p, host, now)
	return docindex.New, nil
}

// fullLocked returns an error if there is no room for another document.
func (m *Store) fullLocked() error {
	switch {
	case m.docs.full():
		return fmt.Errorf("the memory index is %w: it takes 32 GiB of URLs", docindex.ErrFull)
	case m.usedLocked() >= m.limit/11*10: // the garbage collector takes a tenth more, see urlserver.TuneGC
		return fmt.Errorf("the memory index is %w: it takes the %d MiB of docindex.memory; "+
			"delete documents (DeleteCrawl, DeleteQueue or PurgeURLs over gRPC), raise the setting, or use "+
			"docindex.kind = \"disk\"", docindex.ErrFull, m.limit>>20)
	}
	return nil
}

// usedLocked returns the memory in use, in bytes, in O(1). Room that removed documents have left is
// not in use.
func (m *Store) usedLocked() int64 {
	return int64(m.docs.bytes.Live()) +
		int64(m.docs.records.Len())*(recordBytes+hashindex.EntryBytes) +
		int64(m.docs.byID.Len())*hashindex.EntryBytes +
		int64(len(m.orders))*queueOrderBytes + int64(len(m.crawls.members))*memberBytes +
		m.base.Sched.Bytes() + m.branches.Bytes()
}

// insertLocked adds a new document.
func (m *Store) insertLocked(queue uint32, p *docindex.Put, host []byte, now int64) {
	for int(queue) >= len(m.orders) {
		m.orders = append(m.orders, make([]queueOrder, max(64, len(m.orders)/2))...)
	}
	if p.Due == docindex.Never {
		p.Metadata, p.Payload = docindex.OwnerOf(p.Metadata), nil
	}
	id := m.docs.add(queue, p, m.docs.hash(queue, p.URL))
	r, c := m.docs.records.At(id), &m.orders[queue]
	r.created = embedded.CreatedAt(p.Created, now)
	if c.last == 0 {
		c.first = id
	} else {
		m.docs.records.At(c.last).sibling = id
	}
	c.last = id
	if p.Due == docindex.Never {
		r.setState(docindex.Completed)
		m.base.Sched.Count(queue, queuesched.Completed)
		m.base.Sched.Refresh(queue, now)
		return
	}
	m.joinCrawlLocked(id, p)
	m.setExpiryLocked(id, p)
	m.setOrderLocked(r, p, now)
	m.enterBranchLocked(r, p, host, now)
	m.base.Sched.Count(queue, queuesched.Scheduled)
	m.enqueueLocked(id, r, now)
}

// findLocked returns the document that a Put means, or 0. queue is the queue of the Put; 0: there
// is none yet.
func (m *Store) findLocked(queue uint32, p *docindex.Put) uint32 {
	switch {
	case len(p.Unique) > 0:
		return m.docs.findUnique(p, func(queue uint32) bool {
			return m.base.Sched.IsIn(queue, p.Crawl, nil)
		})
	case queue != 0:
		return m.docs.find(queue, p, m.docs.hash(queue, p.URL))
	}
	return 0
}

// settleUpdateLocked decides whether a Put of a known document updates it, and sets in an update
// the parts that the document keeps.
func (m *Store) settleUpdateLocked(id uint32, p *docindex.Put, now int64) {
	r := m.docs.records.At(id)
	packed := m.docs.extra(r).packed
	if p.Sooner && !p.Update {
		p.Update = embedded.BringsForward(p, r.state(), r.due(), now)
		if p.Update && r.state() == docindex.Scheduled {
			p.Priority = r.priority
			packed.Unpack(p)
		}
	}
	if p.Update {
		p.URL = m.docs.url(r) // of a document that is known by its unique it may be another
		packed.Renew(p)
	}
}

// updateLocked updates a known document.
func (m *Store) updateLocked(id uint32, p *docindex.Put, now int64) {
	r := m.docs.records.At(id)
	m.noteReportLocked(id, p.Due == docindex.Never, now)
	m.completeLocked(id, now)
	if p.Due == docindex.Never {
		m.docs.setPacked(r, m.docs.extra(r).packed.Lasting())
		return
	}
	m.joinCrawlLocked(id, p) // before the URL, which p may share, moves
	m.docs.setPacked(r, docindex.Pack(p))
	m.setOrderLocked(r, p, now)
	m.scheduleLocked(id, now)
}

// noteReportLocked sets the last outcome of a document that an update ends: the document is in
// transit, or the update completes it.
func (m *Store) noteReportLocked(id uint32, completes bool, now int64) {
	r := m.docs.records.At(id)
	if r.state() == docindex.InTransit || r.state() == docindex.Scheduled && completes {
		r.setLast(embedded.Reported(now))
	}
}

// setOrderLocked sets due time, priority and sequence number, which decide the place of a document
// in its queue. The document must be in no run, and waits in no branch.
func (m *Store) setOrderLocked(r *record, p *docindex.Put, now int64) {
	m.seq++
	r.priority, r.seq = p.Priority, m.seq
	r.flags &^= inBranch
	r.setDue(p.Due)
	if p.Due == docindex.Now {
		r.setDue(now / 1000)
	}
}

// Document is [docindex.Putter.Document].
func (m *Store) Document(_ context.Context, docID []byte) (docindex.Document, error) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	id := m.docs.findID(docID)
	if id == 0 || !m.base.Sched.Exists(m.docs.records.At(id).queue) {
		return docindex.Document{}, fmt.Errorf("doc_id %.100q: %w", docID, docindex.ErrUnknown)
	}
	return m.documentLocked(id).Clone(), nil
}

// documentLocked returns a document that aliases the store's memory.
func (m *Store) documentLocked(id uint32) docindex.Document {
	r := m.docs.records.At(id)
	d := docindex.Document{State: r.state(), Created: time.Unix(int64(r.created), 0).UTC(), Last: r.last().Outcome(),
		Put: docindex.Put{
			URL:      m.docs.url(r),
			DocID:    m.docs.docID(nil, id),
			Priority: r.priority,
			Crawl:    []byte(m.base.Sched.Crawl(r.queue)),
			Key:      m.base.Sched.Key(r.queue),
			Due:      r.due(),
		}}
	m.docs.extra(r).packed.Unpack(&d.Put)
	if d.State == docindex.Completed {
		d.Due = docindex.Never
	}
	return d
}

// recordBytes is the size of a record.
const recordBytes = 56

// Sizes of a queueOrder and of a member.
const (
	queueOrderBytes = 20
	memberBytes     = 16
)
