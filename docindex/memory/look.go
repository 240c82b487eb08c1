package memory

import (
	"context"
	"fmt"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// Find is [docindex.Frontier.Find].
func (m *Store) Find(_ context.Context, queue docindex.Scope, url []byte) (docindex.Document, error) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	m.base.CatchUpLocked(m.base.Now())
	if q := m.base.Sched.Find(queue.Crawl, queue.Key); q != 0 {
		if id := m.docs.likeliest(q, url, m.docs.hash(q, url)); id != 0 {
			return m.documentLocked(id).Clone(), nil
		}
	}
	return docindex.Document{}, fmt.Errorf("url %.200q with key %.100q: %w", url, queue.Key, docindex.ErrUnknown)
}

// List is [docindex.Frontier.List]. Within a queue it goes by arrival.
func (m *Store) List(ctx context.Context, s docindex.Scope, visit func(*docindex.Document) bool) error {
	return m.base.List(ctx, s, func(queue uint32) (goOn bool, err error) {
		return embedded.ListQueue(ctx, func(at position, docs []docindex.Document) ([]docindex.Document,
			position, bool, error) {
			docs, next, err := m.documents(queue, s, at, docs)
			return docs, next, next.next == 0, err
		}, visit)
	})
}

// position is where the list of a queue continues.
type position struct {
	next      uint32 // document; 0: the first
	forgotten uint32 // the queue's count of removed documents when next was found
}

// documents appends some documents of a queue, beginning at a position. It returns the next
// position, which has no next document at the end.
func (m *Store) documents(
	queue uint32, s docindex.Scope, at position, docs []docindex.Document,
) ([]docindex.Document, position, error) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	if !m.base.Sched.IsIn(queue, s.Crawl, s.Key) {
		return docs, position{}, nil
	}
	c := &m.orders[queue]
	switch {
	case at.next == 0:
		at = position{c.first, c.removed}
	case at.forgotten != c.removed || !m.belongsLocked(at.next, queue):
		return docs, position{}, docindex.ErrListAgain // the place of next is unknown now
	}
	for ; at.next != 0 && len(docs) < embedded.LockBatch; at.next = m.docs.records.At(at.next).sibling {
		docs = append(docs, m.documentLocked(at.next).Clone())
	}
	return docs, at, nil
}

func (m *Store) belongsLocked(id, queue uint32) bool {
	r := m.docs.records.At(id)
	return r.urlLen > 0 && r.queue == queue
}

// HostStatus is [docindex.Inspector.HostStatus].
func (m *Store) HostStatus(ctx context.Context, host []byte) (docindex.HostStatus, error) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	now := m.base.Now()
	m.base.CatchUpLocked(now)
	return embedded.HostStatus(m.base.Sched, host, !m.base.Inactive, now), ctx.Err()
}
