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

// coldQueues is what a store knows of the queues that are not in memory. It is a [queuesched.Cold].
type coldQueues struct {
	table *queueTable
	db    *database
	txn   *txn
	sched *queuesched.Scheduler

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

// FindQueue is [queuesched.Cold.FindQueue].
func (c *coldQueues) FindQueue(crawl uint32, key []byte) uint32 {
	if c.db.failed != nil {
		return 0
	}
	id, err := c.find(crawl, key)
	if err != nil {
		c.db.fail(err)
		return 0
	}
	return id
}

func (c *coldQueues) find(crawl uint32, key []byte) (id uint32, err error) {
	text, _ := c.sched.CrawlAt(crawl)
	n := c.table.namer.keyName([]byte(text), key)
	return c.named(&n)
}

// named is queueOf for the name that docNamer.keyName returns.
func (c *coldQueues) named(n *name) (id uint32, err error) {
	row, err := c.txn.row(n)
	if c.txn.b == nil { // a later txn must not read what this one has seen
		c.txn.closeReads()
	}
	if err != nil || row == nil {
		return 0, err
	}
	if len(row) != 4 {
		return 0, errRow
	}
	return c.load(binary.BigEndian.Uint32(row))
}

// load returns the scheduler's number of the queue with a number on disk, which it loads; 0: there
// is none.
func (c *coldQueues) load(no uint32) (id uint32, err error) {
	if id = c.table.byNumber(no); id != 0 {
		return id, nil
	}
	row, err := c.db.get(numberKey(queueRow, no))
	if err != nil || row == nil {
		return 0, err
	}
	q, err := readQueue(row)
	if err != nil {
		return 0, err
	}
	return c.loadRow(no, &q, c.table.now())
}

// loadRow adds a cold queue to those in memory.
func (c *coldQueues) loadRow(no uint32, q *queueRecord, now int64) (id uint32, err error) {
	crawl, ok := c.sched.FindCrawl(q.crawl)
	if !ok {
		return 0, errRow
	}
	earlier := q.asOf <= c.opened
	if earlier { // the slots may have requested its host until the process ended
		q.Served[queuesched.SlotConsumer] = max(q.Served[queuesched.SlotConsumer], c.served)
	}
	for consumer := range q.Served {
		q.Served[consumer] = min(q.Served[consumer], now) // the clock may have been set back
	}
	one := queue{no: no, due: q.due, cursor: q.cursor, wake: q.wake, wakes: q.Scheduled,
		hasIDs: q.hasIDs, owners: !q.ownerless, set: q.isSet(now)}
	if q.Scheduled == 0 {
		one.due, one.cursor = queuesched.Never, lastPlace
	}
	id = c.sched.Load(crawl, q.key, q.Persisted, one.due, q.wake, now)
	c.table.add(id, one)
	if earlier && q.Scheduled > 0 {
		c.sched.CountsAt(id, c.counting.of(crawl, wakePlace{q.wake, no}), now)
	}
	return id, nil
}

// LoadQueues is [queuesched.Cold.LoadQueues].
func (c *coldQueues) LoadQueues(crawl uint32, n int, until int64) (loaded int) {
	if c.db.failed != nil {
		return 0
	}
	loaded, err := c.loadSome(crawl, n, until)
	if err != nil {
		c.db.fail(err)
	}
	return loaded
}

// loadSome loads queues of a crawl in the order of their wake rows.
func (c *coldQueues) loadSome(crawl uint32, n int, until int64) (loaded int, err error) {
	now := c.table.now()
	place := c.placeOf(crawl)
	it, err := c.db.NewIter(&pebble.IterOptions{
		LowerBound: wakeKey(nil, crawl, *place), UpperBound: numberEnd(wakeRow, crawl)})
	if err != nil {
		return 0, err
	}
	defer it.Close()
	next := queuesched.NoMoment
	rows := queueRows{db: c.db}
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
		if c.table.byNumber(p.no) != 0 {
			continue
		}
		q, err := rows.read(p.no)
		if err != nil {
			return loaded, err
		}
		if q == nil || q.wake != p.at {
			continue // it has another row
		}
		if _, err := c.loadRow(p.no, q, now); err != nil {
			return loaded, err
		}
		loaded++
	}
	c.sched.WakeCrawl(crawl, next)
	return loaded, it.Error()
}

// queueRows reads rows of queues by number.
type queueRows struct {
	db *database
	it *pebble.Iterator
	q  queueRecord
}

// read returns the row of a queue, or nil if there is none. It is valid until the next read.
func (r *queueRows) read(no uint32) (q *queueRecord, err error) {
	if r.it == nil {
		if r.it, err = r.db.NewIter(&pebble.IterOptions{
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
func (c *coldQueues) HasRoom() bool {
	used := c.evictor.used()
	return used < c.evictor.budget ||
		used-int64(c.sched.Total().URLs[queuesched.InTransit])*1000 < fewQueues
}

const fewQueues = 64 << 10 // bytes

// open prepares for queues that are not in memory.
func (c *coldQueues) open(now, served int64) error {
	memory := c.db.cfg.Memory
	if memory == 0 {
		memory = DefaultMemory
	}
	c.evictor = evictor{sched: c.sched, queues: &c.table.queues,
		budget: memory / 3 * 2} // the garbage collector takes the rest
	c.totals = map[uint32]struct{}{}
	c.openedAt, c.served = now, served
	c.sched.KeepCold(c)
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: []byte{pauseRow}, UpperBound: []byte{queueRow + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	c.hasPauses = it.First() && it.Key()[0] == pauseRow
	if it.Last() && it.Key()[0] == queueRow && len(it.Key()) == 1+4 {
		c.table.globals.queueNo = binary.BigEndian.Uint32(it.Key()[1:])
	}
	return it.Error()
}
