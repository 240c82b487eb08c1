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
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return docindex.Document{}, err
	}
	defer s.txn.clear()
	s.base.CatchUpLocked(s.base.Now())
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
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return docindex.Document{}, err
	}
	defer s.txn.clear()
	s.base.CatchUpLocked(s.base.Now())
	if id := s.base.Sched.Find(queue.Crawl, queue.Key); id != 0 {
		n := s.namer.name(s.queueAt(id).no, url)
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
	return s.eachQueue(ctx, scope, func(no uint32) (goOn bool, err error) {
		return embedded.ListQueue(ctx, func(from []byte, docs []docindex.Document) ([]docindex.Document,
			[]byte, bool, error) {
			docs, next, err := s.documents(no, scope, from, docs)
			return docs, next, next == nil, err
		}, visit)
	})
}

const listPortion = 200

// documents appends some documents of the queue with a number on disk, beginning with a key. next is
// the key to continue with, or nil.
func (s *Store) documents(
	queueNo uint32, scope docindex.Scope, from []byte, docs []docindex.Document,
) (_ []docindex.Document, next []byte, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return docs, nil, err
	}
	defer s.txn.clear()
	now := s.base.Now()
	s.base.CatchUpLocked(now)
	queue, err := s.queueOf(queueNo)
	if err != nil {
		return docs, nil, s.failLocked(err)
	}
	if !s.base.Sched.IsIn(queue, scope.Crawl, scope.Key) {
		return docs, nil, nil
	}
	next, err = s.scanLocked(queueNo, from, listPortion, func(n *name, d *doc) error {
		out, err := s.documentLocked(n, d)
		docs = append(docs, out)
		return err
	})
	if err != nil {
		return docs, nil, s.failLocked(err)
	}
	return docs, next, s.trimLocked(now)
}

// scanLocked calls do with documents of a queue, beginning with a key. It returns the key to
// continue with, or nil.
func (s *Store) scanLocked(
	queueNo uint32, from []byte, most int, do func(n *name, d *doc) error,
) (next []byte, err error) {
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
