package disk

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// queuesADelete is how many queues one txn deletes at most.
const queuesADelete = 1000

// Delete is [docindex.Frontier.Delete]. The queues are gone at once. Their space on disk becomes
// free when Pebble compacts it.
func (s *Store) Delete(ctx context.Context, scope docindex.Scope) (deleted int, err error) {
	var some []uint32
	drop := func() error {
		n, err := s.deleteQueues(some, scope)
		deleted, some = deleted+n, some[:0]
		return err
	}
	err = s.eachQueue(ctx, scope, func(no uint32) (bool, error) {
		if some = append(some, no); len(some) < queuesADelete {
			return true, nil
		}
		return true, drop()
	})
	if err == nil && len(some) > 0 {
		err = drop()
	}
	return deleted, err
}

// deleteQueues deletes queues by their numbers on disk.
func (s *Store) deleteQueues(some []uint32, scope docindex.Scope) (deleted int, err error) {
	var o docindex.Outcomes
	defer func() { s.base.Recall(&o) }()
	b, no, deleted, were, err := s.dropQueues(some, scope, &o)
	defer func() {
		for _, had := range were {
			had.docs.Close() // dropIDs has returned their errors
			had.plans.Close()
		}
	}()
	if err != nil {
		return 0, err
	}
	s.callForget(&o)
	if err := s.db.waitSync(b, no); err != nil {
		return 0, err
	}
	for no, had := range were {
		if err := s.dropIDs(no, &had); err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// callForget calls the base's Forget with documents that were at the slots and are deleted.
func (s *Store) callForget(o *docindex.Outcomes) {
	s.base.Mu.Lock()
	tell := s.base.Forget
	s.base.Mu.Unlock()
	if tell != nil && o.Len() > 0 {
		tell(o)
	}
}

// deletedQueue has the rows of a deleted queue with id rows, as they were before the deletion.
type deletedQueue struct {
	crawl       []byte
	docs, plans *pebble.Iterator // over the documents' rows and bodies
}

// rowsOf returns the rows of a queue as they are now.
func (s *Store) rowsOf(id uint32) (had deletedQueue, err error) {
	no := s.queues.at(id).no
	had.crawl = []byte(s.base.Sched.Crawl(id))
	for _, one := range []struct {
		it   **pebble.Iterator
		kind byte
	}{{&had.docs, docRow}, {&had.plans, planRow}} {
		*one.it, err = s.db.NewIter(&pebble.IterOptions{LowerBound: numberKey(one.kind, no),
			UpperBound: numberEnd(one.kind, no)})
		if err != nil {
			break
		}
	}
	if err != nil && had.docs != nil {
		had.docs.Close()
	}
	return had, err
}

// dropQueues deletes the given queues, except those that are no longer in the scope. were has each
// deleted queue with id rows, by its number.
func (s *Store) dropQueues(some []uint32, scope docindex.Scope, o *docindex.Outcomes) (
	b *pebble.Batch, no uint64, deleted int, were map[uint32]deletedQueue, err error,
) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.txn.begin(); err != nil {
		return nil, 0, 0, nil, err
	}
	now := s.base.Now()
	dropped := map[uint32]bool{}
	inTransit := uint32(0)
	var nos []uint32
	for _, no := range some {
		id, err := s.queues.cold.load(scope.Crawl, no)
		if err != nil {
			return nil, 0, 0, were, s.txn.abort(err)
		}
		if !s.base.Sched.IsIn(id, scope.Crawl, scope.Key) {
			continue
		}
		q := s.queues.at(id)
		if q.hasIDs {
			had, err := s.rowsOf(id)
			if err != nil {
				return nil, 0, 0, were, s.txn.abort(err)
			}
			if were == nil {
				were = map[uint32]deletedQueue{}
			}
			were[q.no] = had
		}
		n := s.base.Sched.QueueTotal(id)
		deleted += int(n.URLs[queuesched.Scheduled] + n.URLs[queuesched.InTransit] + n.URLs[queuesched.Completed])
		inTransit += uint32(n.URLs[queuesched.InTransit])
		s.queues.dropRow(id)
		s.base.Sched.Drop(id)
		dropped[id] = true
		nos = append(nos, q.no)
	}
	s.queues.dropDocuments(nos)
	if inTransit > 0 {
		s.finishAllLocked(dropped, o, now)
	}
	for id := range dropped {
		s.crawls.dropPartitions(s.queues.at(id).no, now)
		s.queues.remove(id)
		s.base.Sched.Free(id, now)
	}
	b, err = s.txn.commit()
	return b, s.queues.journal.no, deleted, were, err
}

// finishAllLocked ends the transit of all documents of deleted queues.
func (s *Store) finishAllLocked(dropped map[uint32]bool, o *docindex.Outcomes, now int64) {
	for id := uint32(1); id < s.transits.bound(); id++ {
		if t := s.transits.at(id); t.queue != 0 && dropped[t.queue] {
			s.recallLocked(t, o)
			s.orphanLocked(id, now)
			s.finishLocked(id, docindex.Completed, now)
		}
	}
}

// orphanLocked blocks the host of a document that is about to be deleted while a URL Frontier
// client has it. The block ends when the lease ends or the client reports the URL. After a restart
// the client's report has no effect; the pause row keeps the host blocked until the lease ends.
func (s *Store) orphanLocked(id uint32, now int64) {
	tr := s.transits.at(id)
	if tr.consumer != queuesched.FrontierConsumer || !s.base.Leases.Has(id) {
		return
	}
	host, until := []byte(tr.host), int64(s.base.Leases.Due(id))
	s.base.Sched.Orphan(tr.queue, host, tr.name.hash[:urlLen], until, now)
	if !s.base.Sched.AnyHost(tr.queue) {
		host = s.base.Sched.Key(tr.queue)
	}
	if pause, gap, backoff := s.base.Sched.HostPause(host); len(host) > 0 && pause < until {
		s.queues.cold.keepPause(host, until, gap, backoff, s.queues.journal.no+1)
	}
}

// dropIDs deletes the id rows of a deleted queue: those of DOC_IDs that clients gave, and those of
// documents with a unique. A crash may leave some of these rows behind; findID ignores them.
func (s *Store) dropIDs(queueNo uint32, had *deletedQueue) error {
	err := s.dropIDsOf(queueNo, had.docs, func(value []byte) ([][]byte, error) {
		d, err := readDoc(value)
		return s.docs.idsOf(had.crawl, d.id, d.kept()), err
	})
	if err != nil {
		return err
	}
	return s.dropIDsOf(queueNo, had.plans, func(value []byte) ([][]byte, error) {
		body, err := readPlan(value)
		return s.docs.idsOf(had.crawl, nil, body.packed), err
	})
}

// dropIDsOf deletes the id rows of the documents that it iterates over. idsOf returns their keys
// from a document's row or body.
func (s *Store) dropIDsOf(queueNo uint32, it *pebble.Iterator, idsOf func(value []byte) ([][]byte, error)) error {
	more := it.First()
	for more {
		var ids [][]byte
		for ; more && len(ids) < embedded.LockBatch; more = it.Next() {
			value, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			some, err := idsOf(value)
			if err != nil {
				return err
			}
			ids = append(ids, some...)
		}
		if err := s.dropSomeIDs(queueNo, ids); err != nil {
			return err
		}
	}
	return it.Error()
}

func (s *Store) dropSomeIDs(queueNo uint32, ids [][]byte) error {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.txn.begin(); err != nil {
		return err
	}
	for _, id := range ids {
		n, ok, err := s.docs.named(id)
		if err != nil {
			return s.txn.abort(err)
		}
		if ok && n.queue == queueNo {
			s.txn.b.Delete(append([]byte{idRow}, id...), nil)
		}
	}
	b, err := s.txn.commit()
	if err != nil {
		return err
	}
	no := s.queues.journal.no
	s.base.Mu.Unlock()
	defer s.base.Mu.Lock()
	return s.db.waitSync(b, no)
}

// Purge is [docindex.Frontier.Purge].
func (s *Store) Purge(ctx context.Context, scope docindex.Scope, before time.Time) (purged int, err error) {
	err = s.eachQueue(ctx, scope, func(no uint32) (bool, error) {
		n, err := s.purgeQueue(ctx, no, scope, before.Unix())
		purged += n
		return true, err
	})
	return purged, err
}

func (s *Store) purgeQueue(
	ctx context.Context, queueNo uint32, scope docindex.Scope, before int64,
) (purged int, err error) {
	for from := []byte(nil); ; {
		if err := ctx.Err(); err != nil {
			return purged, err
		}
		var n int
		var b *pebble.Batch
		var no uint64
		var o docindex.Outcomes
		b, no, from, n, err = s.purgeSome(queueNo, scope, from, before, &o)
		s.base.Recall(&o)
		if err != nil {
			return purged, err
		}
		if err := s.db.waitSync(b, no); err != nil {
			return purged, err
		}
		purged += n
		if from == nil {
			return purged, nil
		}
	}
}

func (s *Store) purgeSome(queueNo uint32, scope docindex.Scope, from []byte, before int64, o *docindex.Outcomes) (
	b *pebble.Batch, no uint64, next []byte, purged int, err error,
) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.txn.begin(); err != nil {
		return nil, 0, nil, 0, err
	}
	queue, err := s.queues.cold.load(scope.Crawl, queueNo)
	if err != nil {
		return nil, 0, nil, 0, s.txn.abort(err)
	}
	if !s.base.Sched.IsIn(queue, scope.Crawl, scope.Key) {
		b, err = s.txn.commit()
		return b, s.queues.journal.no, nil, 0, err
	}
	now := s.base.Now()
	next, err = s.docs.scan(queueNo, from, embedded.LockBatch, func(n *name, d *doc) error {
		if int64(d.created) < before {
			if id := s.transits.of(n); id != 0 {
				s.recallLocked(s.transits.at(id), o)
				s.orphanLocked(id, now)
			}
			purged++
			return s.forgetLocked(queue, n, d, now)
		}
		return nil
	})
	if err != nil {
		return nil, 0, nil, 0, s.txn.abort(err)
	}
	b, err = s.txn.commit()
	return b, s.queues.journal.no, next, purged, err
}

// forgetLocked deletes one document. Its queue stays.
func (s *Store) forgetLocked(queue uint32, n *name, d *doc, now int64) error {
	lasting, err := s.docs.lasting(n, d)
	if err != nil {
		return err
	}
	kind := d.kind()
	if !d.completed {
		s.endedLocked(queue, n, d, now)
		kind = noKind
	}
	if !d.completed || d.purged {
		s.docs.unplan(n, d)
	}
	s.crawls.leave(d.member, kind)
	s.queues.count(queue, queuesched.Completed, -1)
	t := &s.txn
	for _, id := range s.docs.idsOf([]byte(s.base.Sched.Crawl(queue)), d.id, lasting) {
		t.b.Delete(append([]byte{idRow}, id...), nil)
	}
	t.docs[*n] = doc{created: gone}
	t.key = n.docKey(t.key[:0])
	t.b.Delete(t.key, nil)
	s.db.memtables.add(n)
	s.docs.known.remove(n)
	s.base.Sched.Refresh(queue, now)
	return nil
}
