package disk

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// loading is the state of reading a store's rows into memory.
type loading struct {
	s           *Store
	now         int64
	partitionNo uint32                   // the partition that was read last
	changes     map[uint32][]queueChange // in the journal, by queue
	stale       [][]byte                 // keys of rows to delete
}

// queueChange is a change of a queue in the journal.
type queueChange struct {
	change
	no uint64 // of the commit
	at int64  // the commit's time, ms
}

// changed loads the queues of which the journal has changes that their rows do not contain.
func (l *loading) changed() error {
	s := l.s
	rows := queueRows{db: &s.db}
	defer rows.close()
	for _, no := range slices.Sorted(maps.Keys(l.changes)) {
		all := l.changes[no]
		q, err := rows.of(all[len(all)-1].crawl, no)
		if err != nil {
			return err
		}
		if q == nil {
			continue // deleted since
		}
		since := l.apply(q, all)
		if since == 0 {
			continue
		}
		q.due, q.cursor, q.branches = 0, place{}, nil
		id, err := s.queues.cold.loadRow(no, q, l.now)
		if err != nil {
			return err
		}
		s.queues.at(id).dirtySince, s.queues.at(id).touched = since, true
		s.queues.journal.dirty = append(s.queues.journal.dirty, dirtyQueue{id: id, since: since})
	}
	l.changes = nil
	slices.SortFunc(s.queues.journal.dirty, func(a, b dirtyQueue) int { return cmp.Compare(a.since, b.since) })
	return nil
}

// crawlTotals reads the counts of a crawl's queues.
func (l *loading) crawlTotals(key, value []byte) error {
	if len(key) != 1+4 {
		return errRow
	}
	crawl, n, err := readTotals(value)
	if err != nil {
		return err
	}
	no := binary.BigEndian.Uint32(key[1:])
	l.s.base.Sched.RestoreCrawl(no, crawl, n)
	l.s.base.Sched.WakeCrawl(no, 0) // its first wake row tells
	return nil
}

// setQueue loads a queue with settings.
func (l *loading) setQueue(key, _ []byte) error {
	if len(key) != 1+4 {
		return errRow
	}
	_, err := l.s.queues.cold.loadAny(binary.BigEndian.Uint32(key[1:]))
	return err
}

// apply applies changes to a queue's record, in their order. It returns the first commit that the
// record did not contain, or 0.
func (l *loading) apply(q *queueRecord, all []queueChange) (since uint64) {
	for _, c := range all {
		if c.no <= q.asOf {
			continue
		}
		if since == 0 {
			since = c.no
		}
		q.Scheduled += uint32(c.scheduled)
		q.Completed += uint32(c.completed)
		for consumer, is := range c.served {
			if is {
				q.Served[consumer] = c.at
			}
		}
	}
	return since
}

func (l *loading) journal(key, value []byte) error {
	if len(key) != 1+8 {
		return errRow
	}
	j := &l.s.queues.journal
	no := binary.BigEndian.Uint64(key[1:])
	if j.first == 0 {
		j.first = no
	} else if no != j.no+1 {
		return fmt.Errorf("commit %d is missing", j.no+1)
	}
	j.no = no
	r := reader{b: value}
	at := r.int()
	g := r.globals()
	g.outcomes[docindex.OutOfScope] = l.s.queues.globals.outcomes[docindex.OutOfScope]
	l.s.queues.globals = g
	size := uint32(1)
	for ; len(r.b) > 0; size++ {
		c := queueChange{change: r.change(), no: no, at: at}
		l.changes[c.queue] = append(l.changes[c.queue], c)
	}
	if r.bad {
		return errRow
	}
	j.sizes = append(j.sizes, size)
	j.total += int(size)
	return nil
}

func (l *loading) preset(key, value []byte) error {
	crawl, queue, err := readPresetKey(key)
	if err != nil {
		return err
	}
	set, err := readSettings(value)
	if err != nil {
		return err
	}
	l.s.base.Sched.Set(crawl, queue, set, l.now)
	return nil
}

// leaseBatch restores the leases of a batch, unless they have ended. The row has the end of other
// daemons' leases as a negative number, so that an older program takes them as ended.
func (l *loading) leaseBatch(key, value []byte) error {
	r := reader{b: value}
	until, consumer := r.int(), queuesched.FrontierConsumer
	if until < 0 {
		until, consumer = -until, queuesched.RemoteConsumer
	}
	if r.bad || len(key) != 1+8 || len(r.b)%leasedLen != 0 {
		return errRow
	}
	no := binary.BigEndian.Uint64(key[1:])
	for ; until > l.now && len(r.b) > 0; r.b = r.b[leasedLen:] {
		if err := l.lease(no, consumer, until, r.b[:leasedLen]); err != nil {
			return err
		}
	}
	if l.s.transits.batches[no] == 0 {
		l.stale = append(l.stale, append([]byte{}, key...))
	}
	return nil
}

// lease restores the lease of one document. It does nothing if the document has been completed or
// scheduled again since.
func (l *loading) lease(batch uint64, consumer queuesched.Consumer, until int64, b []byte) error {
	s := l.s
	queueNo := binary.BigEndian.Uint32(b)
	id, err := s.queues.cold.loadAny(queueNo)
	if err != nil || id == 0 {
		return err
	}
	t := transit{queue: id, consumer: consumer, leaseBatch: batch}
	copy(t.at[:], b[4:])
	value, err := s.db.get(planKey(nil, queueNo, &t.at))
	if err != nil || value == nil {
		return err
	}
	body, err := readPlan(value)
	if err != nil {
		return err
	}
	t.name, t.created = s.docs.namer.nameOfPlan(queueNo, &body), body.created
	t.setText(&body)
	t.member = body.member
	if s.base.Sched.AnyHost(id) {
		t.host = string(docindex.HostOf(body.url))
	}
	if old := s.transits.of(&t.name); old != 0 {
		s.finishLocked(old, docindex.Scheduled, l.now) // a later batch leases it again
	}
	s.dispatchLocked(t, until, l.now)
	return nil
}

func (l *loading) finish() error {
	s := l.s
	if _, err := s.queues.cold.counting.some(s.base.Sched, l.now); err != nil {
		return err
	}
	s.txn.endedBatches = nil // stale has their keys already
	if s.queues.journal.first == 0 {
		s.queues.journal.first = s.queues.journal.no + 1
	}
	if err := l.closeCrawls(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	for _, key := range l.stale {
		b.Delete(key, nil)
	}
	if b.Empty() {
		return b.Close()
	}
	if err := s.db.Apply(b, pebble.NoSync); err != nil {
		return err
	}
	return b.Close()
}
