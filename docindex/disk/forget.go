package disk

import (
	"context"
	"slices"
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
	if err := s.waitSync(b, no); err != nil {
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

// deletedQueue is a queue with rows of idRow, as it was before it was deleted.
type deletedQueue struct {
	crawl       []byte
	docs, plans *pebble.Iterator // over the documents' rows and bodies
}

// rowsOf returns the rows of a queue as they are now.
func (s *Store) rowsOf(id uint32) (had deletedQueue, err error) {
	no := s.queueAt(id).no
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

// dropQueues deletes those of some queues that are still in the scope. were has each deleted queue with
// rows of idRow, by its number.
func (s *Store) dropQueues(some []uint32, scope docindex.Scope, o *docindex.Outcomes) (
	b *pebble.Batch, no uint64, deleted int, were map[uint32]deletedQueue, err error,
) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.beginLocked(); err != nil {
		return nil, 0, 0, nil, err
	}
	now := s.base.Now()
	dropped := map[uint32]bool{}
	inTransit := uint32(0)
	var nos []uint32
	for _, no := range some {
		id, err := s.queueOf(no)
		if err != nil {
			return nil, 0, 0, were, s.abortLocked(err)
		}
		if !s.base.Sched.IsIn(id, scope.Crawl, scope.Key) {
			continue
		}
		q := s.queueAt(id)
		if q.hasIDs {
			had, err := s.rowsOf(id)
			if err != nil {
				return nil, 0, 0, were, s.abortLocked(err)
			}
			if were == nil {
				were = map[uint32]deletedQueue{}
			}
			were[q.no] = had
		}
		n := s.base.Sched.QueueTotal(id)
		deleted += int(n.URLs[queuesched.Scheduled] + n.URLs[queuesched.InTransit] + n.URLs[queuesched.Completed])
		inTransit += uint32(n.URLs[queuesched.InTransit])
		s.forgetQueueLocked(id)
		s.base.Sched.Drop(id)
		dropped[id] = true
		nos = append(nos, q.no)
	}
	s.dropRowsLocked(nos)
	if inTransit > 0 {
		s.finishAllLocked(dropped, o, now)
	}
	for id := range dropped {
		s.dropPartitionsLocked(id, now)
		s.queues.remove(id)
		s.base.Sched.Free(id, now)
	}
	b, err = s.commitLocked()
	return b, s.journal.no, deleted, were, err
}

// forgetQueueLocked deletes the rows of a queue itself.
func (s *Store) forgetQueueLocked(id uint32) {
	q := s.queueAt(id)
	s.cold.totals[s.base.Sched.CrawlNo(id)] = struct{}{}
	s.wakeLocked(id, queuesched.NoMoment, false, 0, 0)
	n := s.namer.keyName([]byte(s.base.Sched.Crawl(id)), s.base.Sched.Key(id))
	s.txn.b.Delete(n.docKey(nil), nil)
	s.memtables.add(&n)
	s.txn.b.Delete(numberKey(queueRow, q.no), nil)
	if q.set {
		s.txn.b.Delete(numberKey(setRow, q.no), nil)
	}
}

// dropRowsLocked deletes the documents' rows of deleted queues. It deletes neighbouring numbers as
// one range; numbers between them that no queue has belong to the range.
func (s *Store) dropRowsLocked(nos []uint32) {
	slices.Sort(nos)
	for len(nos) > 0 {
		first, last := nos[0], nos[0]
		for nos = nos[1:]; len(nos) > 0 && s.emptyLocked(last, nos[0]); nos = nos[1:] {
			last = nos[0]
		}
		for _, kind := range []byte{planRow, docRow} {
			s.txn.b.DeleteRange(numberKey(kind, first), numberEnd(kind, last), nil)
		}
	}
}

const maxGap = 64 // dropRowsLocked joins two ranges only if their numbers are this close

// emptyLocked reports whether no queue has a number between from and to. It is false for numbers
// further apart than maxGap.
func (s *Store) emptyLocked(from, to uint32) bool {
	if to-from > maxGap {
		return false
	}
	for no := from + 1; no < to; no++ {
		if s.queues.byNumber(no) != 0 {
			return false
		}
		if row, err := s.get(numberKey(queueRow, no)); err != nil || row != nil {
			return false
		}
	}
	return true
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
		s.keepPauseLocked(host, until, gap, backoff, s.journal.no+1)
	}
}

// dropIDs deletes the rows of idRow of a deleted queue: of DOC_IDs that clients gave, and of
// documents that are known by a unique. A crash may leave some of these rows behind; who finds one
// ignores it.
func (s *Store) dropIDs(queueNo uint32, had *deletedQueue) error {
	err := s.dropIDsOf(queueNo, had.docs, func(value []byte) ([][]byte, error) {
		d, err := readDoc(value)
		return s.idsOf(had.crawl, d.id, d.kept()), err
	})
	if err != nil {
		return err
	}
	return s.dropIDsOf(queueNo, had.plans, func(value []byte) ([][]byte, error) {
		body, err := readPlan(value)
		return s.idsOf(had.crawl, nil, body.packed), err
	})
}

// dropIDsOf deletes the rows of idRow that the rows of an iterator have, as idsOf returns them.
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
	if err := s.beginLocked(); err != nil {
		return err
	}
	for _, id := range ids {
		n, ok, err := s.ownerLocked(id)
		if err != nil {
			return s.abortLocked(err)
		}
		if ok && n.queue == queueNo {
			s.txn.b.Delete(append([]byte{idRow}, id...), nil)
		}
	}
	b, err := s.commitLocked()
	if err != nil {
		return err
	}
	no := s.journal.no
	s.base.Mu.Unlock()
	defer s.base.Mu.Lock()
	return s.waitSync(b, no)
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
		if err := s.waitSync(b, no); err != nil {
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
	if err := s.beginLocked(); err != nil {
		return nil, 0, nil, 0, err
	}
	queue, err := s.queueOf(queueNo)
	if err != nil {
		return nil, 0, nil, 0, s.abortLocked(err)
	}
	if !s.base.Sched.IsIn(queue, scope.Crawl, scope.Key) {
		b, err = s.commitLocked()
		return b, s.journal.no, nil, 0, err
	}
	now := s.base.Now()
	next, err = s.scanLocked(queueNo, from, embedded.LockBatch, func(n *name, d *doc) error {
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
		return nil, 0, nil, 0, s.abortLocked(err)
	}
	b, err = s.commitLocked()
	return b, s.journal.no, next, purged, err
}

// forgetLocked deletes one document. Its queue stays.
func (s *Store) forgetLocked(queue uint32, n *name, d *doc, now int64) error {
	lasting, err := s.lastingLocked(n, d)
	if err != nil {
		return err
	}
	kind := d.kind()
	if !d.completed {
		s.endedLocked(queue, n, d, now)
		kind = noKind
	}
	if !d.completed || d.purged {
		s.unplanLocked(n, d)
	}
	s.leaveCrawlLocked(d.member, kind)
	s.count(queue, queuesched.Completed, -1)
	t := &s.txn
	for _, id := range s.idsOf([]byte(s.base.Sched.Crawl(queue)), d.id, lasting) {
		t.b.Delete(append([]byte{idRow}, id...), nil)
	}
	t.docs[*n] = doc{created: gone}
	t.key = n.docKey(t.key[:0])
	t.b.Delete(t.key, nil)
	s.memtables.add(n)
	s.known.remove(n)
	s.base.Sched.Refresh(queue, now)
	return nil
}
