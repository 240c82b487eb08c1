package docindex

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"urlserver/docindex/internal/queuesched"
	"urlserver/internal/container/finder"
	"urlserver/internal/container/timeheap"
)

// hold is how many documents are worked on before the lock is let go.
const hold = 1000

var errFull = fmt.Errorf("the memory index is %w: it takes 32 GiB of URLs", ErrFull)

// Memory is the Store that keeps everything in RAM: about 170 bytes a URL of 70 bytes, nothing of it on the garbage
// collector's path. Queues take turns, one document a turn at the slots.
//
// The DOC_ID it gives is the number of the document, counted from 1; numbers of forgotten documents are given
// again. A client may give any other, also such a number: where that would have been a later document's, that one
// gets a number above 2^32.
//
// An outcome is of a document only if it names its URL too, or none: so what was handed out before a restart
// completes nothing else. A host of which something is out at one door is not given out at the other.
//
// Safe for concurrent use.
type Memory struct {
	start time.Time

	mu       sync.Mutex // guards all below; held for memory work only
	docs     *shelf
	doors    *queuesched.Doors
	bell     Bell          // rings with the doors' news
	chains   []chain       // by queue
	leases   timeheap.Heap // documents in transit by the end of their lease; a Duration stands for ms since 1970
	seq      uint32
	outcomes [Kinds]int
	crawls   ledger
	purges   int             // that picking may still do before the lock is let go
	onDelete func(*Outcomes) // nil: nobody wants to know
	passive  bool            // calls are not served
	wakes    []func()
	backs    []func(*Outcomes)
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	m := &Memory{start: time.Now(), docs: newShelf(), crawls: newLedger()}
	m.doors = queuesched.New(m.bell.Ring)
	return m
}

// now is in ms since 1970, by the monotonic clock since the start.
func (m *Memory) now() int64 {
	return m.start.UnixMilli() + time.Since(m.start).Milliseconds()
}

// nowUp is now, but never before it: a delay that is counted from then on is not short by a part of a millisecond.
func (m *Memory) nowUp() int64 {
	return m.start.UnixMilli() + int64((time.Since(m.start)+time.Millisecond-1)/time.Millisecond)
}

// catchUpLocked makes true what has become due. more says that it left some of it.
func (m *Memory) catchUpLocked(now int64) (more bool) {
	for range hold {
		id, end, ok := m.leases.Min()
		if !ok || int64(end) > now {
			return m.doors.Advance(now)
		}
		m.landLocked(id, Scheduled, now)
	}
	return true
}

// Put is [Store.Put].
func (m *Memory) Put(ctx context.Context, p *Puts) (res PutResult, err error) {
	scheduled := false
	for i := 0; i < p.Len() && err == nil; i += hold {
		if err = ctx.Err(); err == nil {
			scheduled = m.putSome(p, i, min(i+hold, p.Len()), &res) || scheduled
		}
	}
	if scheduled {
		m.wake()
	}
	return res, err
}

func (m *Memory) putSome(p *Puts, from, to int, res *PutResult) (scheduled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for i := from; i < to; i++ {
		put, host := p.At(i)
		verdict, err := m.putLocked(&put, host, now)
		p.Settle(i, verdict)
		switch verdict {
		case Refused:
			res.Refused = append(res.Refused, Refusal{Index: i, Err: err})
			continue
		case New:
			res.New++
		case Dropped:
			res.Dropped++
		default:
			res.Known++
		}
		scheduled = scheduled || (verdict == New || verdict == Changed) && put.Due != Never
	}
	return scheduled
}

func (m *Memory) putLocked(p *Put, host []byte, now int64) (Verdict, error) {
	key := p.Key
	if len(key) == 0 {
		key = host
	}
	queue := m.doors.Find(p.Crawl, key)
	known, hash := uint32(0), uint32(0)
	if queue != 0 {
		hash = m.docs.hash(queue, p.URL)
		known = m.docs.find(queue, p, hash)
	}
	if len(p.DocID) > 0 {
		if id := m.docs.findID(p.DocID); id != 0 && id != known {
			return Refused, fmt.Errorf("doc_id %q: taken by %.200s", p.DocID, m.docs.url(m.docs.records.At(id)))
		}
	}
	if p.Known && m.doors.HasOrphans() {
		m.doors.Reported(host, p.URL, now)
	}
	if known != 0 && p.Known {
		m.ownLocked(known, p)
	}
	switch {
	case m.droppedLocked(p, known, now):
		return Dropped, nil
	case known != 0 && p.Known:
		m.renewLocked(known, p, now)
		m.sayEndLocked(known, p)
		return Changed, nil
	case known != 0:
		m.sayEndLocked(known, p)
		return Same, nil
	case m.docs.full():
		return Refused, errFull
	}
	queue = m.doors.Open(p.Crawl, key, host, now)
	m.enterLocked(queue, p, now)
	return New, nil
}

// enterLocked makes a document of p, which is not known.
func (m *Memory) enterLocked(queue uint32, p *Put, now int64) {
	for int(queue) >= len(m.chains) {
		m.chains = append(m.chains, make([]chain, max(64, len(m.chains)/2))...)
	}
	if p.Due == Never {
		p.Metadata = OwnerOf(p.Metadata)
	}
	id := m.docs.add(queue, p, m.docs.hash(queue, p.URL))
	r, c := m.docs.records.At(id), &m.chains[queue]
	r.created = CreatedAt(p.Created, now)
	if c.last == 0 {
		c.first = id
	} else {
		m.docs.records.At(c.last).sibling = id
	}
	c.last = id
	if p.Due == Never {
		r.setState(Completed)
		m.doors.Count(queue, queuesched.Completed)
		m.doors.Refresh(queue, now)
		return
	}
	m.bookLocked(id, p)
	m.sayEndLocked(id, p)
	m.planLocked(r, p, now)
	m.doors.Count(queue, queuesched.Scheduled)
	m.lineUpLocked(id, r, now)
}

// CreatedAt is when a document was put first, as stores keep it: seconds since 1970; given is the Put's, now in ms.
func CreatedAt(given, now int64) uint32 {
	if given == 0 {
		given = now / 1000
	}
	return uint32(max(0, min(given, math.MaxUint32)))
}

// ownLocked has news of a document name its owner, which stays.
func (m *Memory) ownLocked(id uint32, p *Put) {
	p.Metadata = WithOwner(p.Metadata, OwnerOf(m.docs.extra(m.docs.records.At(id)).metadata))
}

// renewLocked brings a known document up to date.
func (m *Memory) renewLocked(id uint32, p *Put, now int64) {
	m.completeLocked(id, now)
	r := m.docs.records.At(id)
	if p.Due == Never {
		m.docs.setMetadata(r, OwnerOf(m.docs.extra(r).metadata))
		return
	}
	m.bookLocked(id, p) // before the URL, which p may share, moves
	m.docs.setMetadata(r, p.Metadata)
	m.planLocked(r, p, now)
	m.scheduleLocked(id, now)
}

// planLocked gives a document, which is in no run, its place in the order.
func (m *Memory) planLocked(r *record, p *Put, now int64) {
	m.seq++
	r.due, r.priority, r.seq = p.Due, p.Priority, m.seq
	if p.Due == Now {
		r.due = now / 1000
	}
}

func (m *Memory) wake() {
	m.mu.Lock()
	wakes := m.wakes
	m.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// Notify is [Store.Notify].
func (m *Memory) Notify(wake func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wakes = append(m.wakes, wake)
}

// Document is [Store.Document].
func (m *Memory) Document(_ context.Context, docID []byte) (Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.docs.findID(docID)
	if id == 0 || !m.doors.Live(m.docs.records.At(id).queue) {
		return Document{}, fmt.Errorf("doc_id %.100q: %w", docID, ErrUnknown)
	}
	return m.documentLocked(id).clone(), nil
}

// documentLocked aliases the store's memory.
func (m *Memory) documentLocked(id uint32) Document {
	r := m.docs.records.At(id)
	d := Document{State: r.state(), Created: time.Unix(int64(r.created), 0).UTC(), Put: Put{
		URL:      m.docs.url(r),
		DocID:    m.docs.docID(nil, id),
		Priority: r.priority,
		Crawl:    []byte(m.doors.Crawl(r.queue)),
		Key:      m.doors.Key(r.queue),
		Metadata: m.docs.extra(r).metadata,
		Due:      r.due,
	}}
	if d.State == Completed {
		d.Due = Never
	}
	return d
}

func (d Document) clone() Document {
	d.URL, d.Key, d.Metadata = bytes.Clone(d.URL), bytes.Clone(d.Key), bytes.Clone(d.Metadata)
	return d
}

// recordBytes is what a record takes.
const recordBytes = 56

// Stats is [Store.Stats]. Bytes leaves out free lists and slice headers.
func (m *Memory) Stats() StoreStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked(m.now())
	n := m.doors.Total()
	return StoreStats{
		Scheduled: int(n.URLs[Scheduled]),
		InTransit: int(n.URLs[InTransit]),
		Completed: int(n.URLs[Completed]),
		Hosts:     int(n.Queues),
		HostsDue:  int(n.Active),
		Outcomes:  m.outcomes,
		Bytes: int64(m.docs.bytes.Size()) + int64(m.docs.records.Len())*(recordBytes+finder.EntryBytes) +
			int64(len(m.chains))*chainBytes + m.doors.Bytes(),
	}
}

const chainBytes = 20
