package memory

import (
	"context"
	"errors"
	"fmt"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// Find is [docindex.Frontier.Find].
func (m *Store) Find(_ context.Context, queue docindex.Scope, url []byte) (docindex.Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked(m.now())
	if q := m.sched.Find(queue.Crawl, queue.Key); q != 0 {
		if id := m.docs.likeliest(q, url, m.docs.hash(q, url)); id != 0 {
			return m.documentLocked(id).Clone(), nil
		}
	}
	return docindex.Document{}, fmt.Errorf("url %.200q with key %.100q: %w", url, queue.Key, docindex.ErrUnknown)
}

// List is [docindex.Frontier.List]. Within a queue it goes by arrival.
func (m *Store) List(ctx context.Context, s docindex.Scope, visit func(*docindex.Document) bool) error {
	if len(s.Key) > 0 {
		m.mu.Lock()
		id := m.sched.Find(s.Crawl, s.Key)
		m.mu.Unlock()
		_, err := m.listQueue(ctx, id, s, visit)
		return err
	}
	for id := uint32(0); ; {
		if id = m.nextQueue(s.Crawl, id); id == 0 {
			return nil
		}
		if goOn, err := m.listQueue(ctx, id, s, visit); err != nil || !goOn {
			return err
		}
	}
}

// nextQueue is the first queue of a crawl with a larger number, or 0.
func (m *Store) nextQueue(crawl []byte, after uint32) uint32 {
	return embedded.NextQueue(after, func(from uint32) (id, next uint32) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.sched.FirstQueue(crawl, from)
	})
}

// position is where in a queue a list goes on.
type position struct {
	next      uint32 // document; 0: the first
	forgotten uint32 // of the queue, when next was found
}

// listQueue visits the documents of a queue of s, a portion at a time.
func (m *Store) listQueue(ctx context.Context, queue uint32, s docindex.Scope, visit func(*docindex.Document) bool) (goOn bool, err error) {
	var docs []docindex.Document
	for at := (position{}); ; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if docs, at, err = m.documents(queue, s, at, docs[:0]); err != nil {
			return false, err
		}
		for i := range docs {
			if !visit(&docs[i]) {
				return false, nil
			}
		}
		if at.next == 0 {
			return true, nil
		}
	}
}

var errForgotten = errors.New("URLs of a queue were forgotten while it was listed; list again")

// documents returns some documents of a queue from a place on, and where to go on: no next there is the end.
func (m *Store) documents(queue uint32, s docindex.Scope, at position, docs []docindex.Document) ([]docindex.Document, position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.sched.IsIn(queue, s.Crawl, s.Key) {
		return docs, position{}, nil
	}
	c := &m.orders[queue]
	switch {
	case at.next == 0:
		at = position{c.first, c.removed}
	case at.forgotten != c.removed || !m.belongsLocked(at.next, queue):
		return docs, position{}, errForgotten // where next stood nobody knows any more
	}
	for ; at.next != 0 && len(docs) < lockBatch; at.next = m.docs.records.At(at.next).sibling {
		docs = append(docs, m.documentLocked(at.next).Clone())
	}
	return docs, at, nil
}

func (m *Store) belongsLocked(id, queue uint32) bool {
	r := m.docs.records.At(id)
	return r.urlLen > 0 && r.queue == queue
}

// Queues is [docindex.Frontier.Queues].
func (m *Store) Queues(ctx context.Context, crawl []byte, visit func(key []byte, idle bool) bool) error {
	return embedded.VisitQueues(ctx, func(from uint32, add func(key []byte, idle bool)) uint32 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.sched.SomeQueues(crawl, from, m.now(), add)
	}, visit)
}

// Crawls is [docindex.Frontier.Crawls].
func (m *Store) Crawls(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sched.Crawls(), nil
}

// Count is [docindex.Frontier.Count].
func (m *Store) Count(_ context.Context, s *docindex.Scope) (docindex.Counts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked(m.now())
	return embedded.CountsOf(m.sched, s), nil
}

// HostStatus is [docindex.Inspector.HostStatus].
func (m *Store) HostStatus(ctx context.Context, host []byte) (docindex.HostStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.catchUpLocked(now)
	return embedded.HostStatus(m.sched, host, !m.inactive, now), ctx.Err()
}
