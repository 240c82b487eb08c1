package disk

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// Document is [docindex.Putter.Document].
func (s *Store) Document(_ context.Context, docID []byte) (docindex.Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return docindex.Document{}, err
	}
	defer s.txn.clear()
	s.catchUpLocked(s.now())
	n, d, err := s.findIDLocked(docID)
	if err == nil && d == nil {
		return docindex.Document{}, fmt.Errorf("doc_id %.100q: %w", docID, docindex.ErrUnknown)
	}
	if err != nil {
		return docindex.Document{}, s.failLocked(err)
	}
	return s.toDocumentLocked(&n, d)
}

// Find is [docindex.Frontier.Find].
func (s *Store) Find(_ context.Context, queue docindex.Scope, url []byte) (docindex.Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return docindex.Document{}, err
	}
	defer s.txn.clear()
	s.catchUpLocked(s.now())
	if id := s.sched.Find(queue.Crawl, queue.Key); id != 0 {
		n := s.namer.name(s.queues[id].no, url)
		d, err := s.likeliestLocked(&n)
		if err != nil {
			return docindex.Document{}, s.failLocked(err)
		}
		if d != nil {
			return s.toDocumentLocked(&n, d)
		}
	}
	return docindex.Document{}, fmt.Errorf("url %.200q with key %.100q: %w", url, queue.Key, docindex.ErrUnknown)
}

func (s *Store) toDocumentLocked(n *name, d *doc) (docindex.Document, error) {
	out, err := s.documentLocked(n, d)
	if err != nil {
		return out, s.failLocked(err)
	}
	return out, nil
}

// List is [docindex.Frontier.List]. Within a queue it goes by a hash, which stays the same.
func (s *Store) List(ctx context.Context, scope docindex.Scope, visit func(*docindex.Document) bool) error {
	if len(scope.Key) > 0 {
		_, err := s.listQueue(ctx, s.find(scope), scope, visit)
		return err
	}
	for id := uint32(0); ; {
		if id = s.nextQueue(scope.Crawl, id); id == 0 {
			return nil
		}
		if goOn, err := s.listQueue(ctx, id, scope, visit); err != nil || !goOn {
			return err
		}
	}
}

func (s *Store) find(scope docindex.Scope) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sched.Find(scope.Crawl, scope.Key)
}

// nextQueue is the first queue of a crawl with a larger number, or 0.
func (s *Store) nextQueue(crawl []byte, after uint32) uint32 {
	return embedded.NextQueue(after, func(from uint32) (id, next uint32) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.sched.FirstQueue(crawl, from)
	})
}

// listQueue visits the documents of a queue of a scope, a portion at a time.
func (s *Store) listQueue(ctx context.Context, queue uint32, scope docindex.Scope, visit func(*docindex.Document) bool) (goOn bool, err error) {
	var docs []docindex.Document
	for from := []byte(nil); ; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if docs, from, err = s.documents(queue, scope, from, docs[:0]); err != nil {
			return false, err
		}
		for i := range docs {
			if !visit(&docs[i]) {
				return false, nil
			}
		}
		if from == nil {
			return true, nil
		}
	}
}

const listPortion = 200

// isAtLocked reports whether a queue still is of a scope, and the one that a key, where there is one, is of.
func (s *Store) isAtLocked(queue uint32, scope docindex.Scope, from []byte) bool {
	return s.sched.IsIn(queue, scope.Crawl, scope.Key) &&
		(from == nil || bytes.HasPrefix(from, numberKey(docRow, s.queues[queue].no)))
}

// documents returns some documents of a queue, from a key on; next is where to go on, or nil.
func (s *Store) documents(queue uint32, scope docindex.Scope, from []byte, docs []docindex.Document) (_ []docindex.Document, next []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil || !s.isAtLocked(queue, scope, from) {
		return docs, nil, err
	}
	defer s.txn.clear()
	s.catchUpLocked(s.now())
	next, err = s.scanLocked(s.queues[queue].no, from, listPortion, func(n *name, d *doc) error {
		told, err := s.documentLocked(n, d)
		docs = append(docs, told)
		return err
	})
	if err != nil {
		return docs, nil, s.failLocked(err)
	}
	return docs, next, nil
}

// scanLocked calls back with documents of a queue, from a key on, and returns the key to go on with, or nil.
func (s *Store) scanLocked(queueNo uint32, from []byte, most int, do func(n *name, d *doc) error) (next []byte, err error) {
	if from == nil {
		from = numberKey(docRow, queueNo)
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: numberEnd(docRow, queueNo)})
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := it.Close(); err == nil {
			err = closing
		}
	}()
	for it.First(); it.Valid(); it.Next() {
		if most--; most < 0 {
			return bytes.Clone(it.Key()), nil
		}
		n, err := readName(it.Key()[1:])
		if err != nil {
			return nil, err
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		d, err := s.readLocked(&n, bytes.Clone(value))
		if err != nil {
			return nil, err
		}
		if err := do(&n, &d); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Queues is [docindex.Frontier.Queues].
func (s *Store) Queues(ctx context.Context, crawl []byte, visit func(key []byte, idle bool) bool) error {
	return embedded.VisitQueues(ctx, func(from uint32, add func(key []byte, idle bool)) uint32 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.sched.SomeQueues(crawl, from, s.now(), add)
	}, visit)
}

// Crawls is [docindex.Frontier.Crawls].
func (s *Store) Crawls(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return nil, err
	}
	return s.sched.Crawls(), nil
}

// Count is [docindex.Frontier.Count].
func (s *Store) Count(_ context.Context, scope *docindex.Scope) (docindex.Counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return docindex.Counts{}, err
	}
	s.catchUpLocked(s.now())
	return embedded.CountsOf(s.sched, scope), nil
}
