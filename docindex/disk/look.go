package disk

import (
	"context"
	"fmt"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// Document is [docindex.Putter.Document].
func (s *Store) Document(_ context.Context, docID []byte) (docindex.Document, error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.db.usable(); err != nil {
		return docindex.Document{}, err
	}
	defer s.txn.clear()
	s.base.CatchUpLocked(s.base.Now())
	n, d, err := s.docs.findID(docID)
	if err == nil && d == nil {
		return docindex.Document{}, fmt.Errorf("doc_id %.100q: %w", docID, docindex.ErrUnknown)
	}
	if err != nil {
		return docindex.Document{}, s.db.fail(err)
	}
	return s.toDocumentLocked(&n, d)
}

// Find is [docindex.Frontier.Find].
func (s *Store) Find(_ context.Context, queue docindex.Scope, url []byte) (docindex.Document, error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.db.usable(); err != nil {
		return docindex.Document{}, err
	}
	defer s.txn.clear()
	s.base.CatchUpLocked(s.base.Now())
	if id := s.base.Sched.Find(queue.Crawl, queue.Key); id != 0 {
		n := s.docs.namer.name(s.queues.at(id).no, url)
		d, err := s.docs.likeliest(&n)
		if err != nil {
			return docindex.Document{}, s.db.fail(err)
		}
		if d != nil {
			return s.toDocumentLocked(&n, d)
		}
	}
	return docindex.Document{}, fmt.Errorf("url %.200q with key %.100q: %w", url, queue.Key, docindex.ErrUnknown)
}

func (s *Store) toDocumentLocked(n *name, d *doc) (docindex.Document, error) {
	out, err := s.docs.document(n, d)
	if err != nil {
		return out, s.db.fail(err)
	}
	return out, nil
}

// List is [docindex.Frontier.List]. It lists the documents of a queue in the order of their names'
// hashes, which never change.
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
	if err := s.db.usable(); err != nil {
		return docs, nil, err
	}
	defer s.txn.clear()
	now := s.base.Now()
	s.base.CatchUpLocked(now)
	queue, err := s.queues.cold.load(scope.Crawl, queueNo)
	if err != nil {
		return docs, nil, s.db.fail(err)
	}
	if !s.base.Sched.IsIn(queue, scope.Crawl, scope.Key) {
		return docs, nil, nil
	}
	next, err = s.docs.scan(queueNo, from, listPortion, func(n *name, d *doc) error {
		out, err := s.docs.document(n, d)
		docs = append(docs, out)
		return err
	})
	if err != nil {
		return docs, nil, s.db.fail(err)
	}
	return docs, next, s.txn.trim(now)
}
