package disk

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// A queue is in memory while it may be needed soon: at the latest when a URL of it is put, handed
// out or looked at. While the queues in memory take more than the budget, each commit evicts some:
// those that may be served last. A cold queue is in its row alone. Never evicted are queues with
// URLs in transit, with settings, on a host with settings, with documents of crawls, whose counts are
// in memory, or with documents in branches, whose turns are.
//
// Each queue with scheduled documents has a wake row, which orders the queues of a crawl by when
// they may be served. When a consumer finds nothing of a crawl in memory, or only what has waited for
// less long, queues are loaded in that order. A queue keeps its wake row while it is in memory. The
// moment in the row is not later than its first document is due, so the rows find all queues after a
// crash, too: what the journal has of a queue beyond its row is loaded by Open.

// coldQueues is what a store knows of the queues that are not in memory.
type coldQueues struct {
	evictor   evictor
	opened    uint64 // the last commit before Open
	openedAt  int64
	served    int64               // rows from before Open: see loadMeta
	places    []wakePlace         // by crawl: wake rows before it are of queues in memory
	totals    map[uint32]struct{} // crawls whose counts the txn has changed
	hasPauses bool                // there may be rows of pauses
	recheck   []byte              // the wake row with which Recheck goes on
	counting  counting
	upgrades  bool // an older version wrote the rows
}

// cold is a Store as [queuesched.Cold].
type cold Store

// FindQueue is [queuesched.Cold.FindQueue].
func (c *cold) FindQueue(crawl uint32, key []byte) uint32 {
	s := (*Store)(c)
	if s.failed != nil {
		return 0
	}
	id, err := s.findQueueLocked(crawl, key)
	if err != nil {
		s.failLocked(err)
		return 0
	}
	return id
}

func (s *Store) findQueueLocked(crawl uint32, key []byte) (id uint32, err error) {
	text, _ := s.base.Sched.CrawlAt(crawl)
	n := s.namer.keyName([]byte(text), key)
	return s.queueNamed(&n)
}

// queueNamed is queueOf for the name that docNamer.keyName returns.
func (s *Store) queueNamed(n *name) (id uint32, err error) {
	row, err := s.rowLocked(n)
	if s.txn.b == nil { // a later txn must not read what this one has seen
		s.txn.closeReads()
	}
	if err != nil || row == nil {
		return 0, err
	}
	if len(row) != 4 {
		return 0, errRow
	}
	return s.queueOf(binary.BigEndian.Uint32(row))
}

// queueOf returns the scheduler's number of the queue with a number on disk, which it loads; 0: there
// is none.
func (s *Store) queueOf(no uint32) (id uint32, err error) {
	if id = s.queues.byNumber(no); id != 0 {
		return id, nil
	}
	row, err := s.get(numberKey(queueRow, no))
	if err != nil || row == nil {
		return 0, err
	}
	q, err := readQueue(row)
	if err != nil {
		return 0, err
	}
	return s.loadQueueLocked(no, &q, s.base.Now())
}

// loadQueueLocked adds a cold queue to those in memory.
func (s *Store) loadQueueLocked(no uint32, q *queueRecord, now int64) (id uint32, err error) {
	crawl, ok := s.base.Sched.FindCrawl(q.crawl)
	if !ok {
		return 0, errRow
	}
	earlier := q.asOf <= s.cold.opened
	if earlier { // the slots may have requested its host until the process ended
		q.Served[queuesched.SlotConsumer] = max(q.Served[queuesched.SlotConsumer], s.cold.served)
	}
	for consumer := range q.Served {
		q.Served[consumer] = min(q.Served[consumer], now) // the clock may have been set back
	}
	one := queue{no: no, due: q.due, cursor: q.cursor, wake: q.wake, wakes: q.Scheduled,
		hasIDs: q.hasIDs, owners: !q.ownerless, set: q.isSet(now)}
	if q.Scheduled == 0 {
		one.due, one.cursor = queuesched.Never, lastPlace
	}
	id = s.base.Sched.Load(crawl, q.key, q.Persisted, one.due, q.wake, now)
	s.queues.add(id, one)
	if earlier && q.Scheduled > 0 {
		s.base.Sched.CountsAt(id, s.cold.counting.of(crawl, wakePlace{q.wake, no}), now)
	}
	return id, nil
}

// LoadQueues is [queuesched.Cold.LoadQueues].
func (c *cold) LoadQueues(crawl uint32, n int, until int64) (loaded int) {
	s := (*Store)(c)
	if s.failed != nil {
		return 0
	}
	loaded, err := s.loadQueuesLocked(crawl, n, until)
	if err != nil {
		s.failLocked(err)
	}
	return loaded
}

// loadQueuesLocked loads queues of a crawl in the order of their wake rows.
func (s *Store) loadQueuesLocked(crawl uint32, n int, until int64) (loaded int, err error) {
	now := s.base.Now()
	place := s.placeOf(crawl)
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: wakeKey(nil, crawl, *place), UpperBound: numberEnd(wakeRow, crawl)})
	if err != nil {
		return 0, err
	}
	defer it.Close()
	next := queuesched.NoMoment
	rows := queueRows{s: s}
	defer rows.close()
	for ok := it.First(); ok; ok = it.Next() {
		_, p, err := readWakeKey(it.Key())
		if err != nil {
			return loaded, err
		}
		if next = p.at; p.at.MS() > until || loaded == n {
			*place = p
			break
		}
		next, *place = queuesched.NoMoment, wakePlace{p.at, p.no + 1}
		if s.queues.byNumber(p.no) != 0 {
			continue
		}
		q, err := rows.read(p.no)
		if err != nil {
			return loaded, err
		}
		if q == nil || q.wake != p.at {
			continue // it has another row
		}
		if _, err := s.loadQueueLocked(p.no, q, now); err != nil {
			return loaded, err
		}
		loaded++
	}
	s.base.Sched.WakeCrawl(crawl, next)
	return loaded, it.Error()
}

// queueRows reads rows of queues by number.
type queueRows struct {
	s  *Store
	it *pebble.Iterator
	q  queueRecord
}

// read returns the row of a queue, or nil if there is none. It is valid until the next read.
func (r *queueRows) read(no uint32) (q *queueRecord, err error) {
	if r.it == nil {
		if r.it, err = r.s.db.NewIter(&pebble.IterOptions{
			LowerBound: []byte{queueRow}, UpperBound: []byte{queueRow + 1}}); err != nil {
			return nil, err
		}
	}
	if !r.it.SeekGE(numberKey(queueRow, no)) || binary.BigEndian.Uint32(r.it.Key()[1:]) != no {
		return nil, r.it.Error()
	}
	value, err := r.it.ValueAndErr()
	if err == nil {
		r.q, err = readQueue(value)
	}
	return &r.q, err
}

func (r *queueRows) close() {
	if r.it != nil {
		r.it.Close() // the reads have returned its errors
	}
}

// HasRoom is [queuesched.Cold.HasRoom]. Beside queues with documents in transit, which stay in
// memory, there is always room for a few.
func (c *cold) HasRoom() bool {
	s := (*Store)(c)
	used := s.cold.evictor.used()
	return used < s.cold.evictor.budget || used-int64(s.transits.length())*1000 < fewQueues
}

const fewQueues = 64 << 10 // bytes
