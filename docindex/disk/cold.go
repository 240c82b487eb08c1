package disk

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// The store loads a queue into memory at the latest when somebody puts, takes or looks at a URL of
// it. If the queues in memory take more than the budget, each commit evicts some: those that may be
// served last. A cold (evicted) queue exists only as its row. The store never evicts queues with
// URLs in transit, queues with settings, and queues on a host with settings. The counts of crawls
// stay in memory.
//
// Each queue with scheduled documents has a wake row. The wake rows order the queues of a crawl by
// the moment from which they may be served. A new queue has a freshRow instead. If a consumer finds
// no queue of a crawl in memory, or only queues that have waited for less long than cold ones, the
// store loads queues in that order. A loaded queue keeps its wake row. The row's moment is never
// later than the moment at which the queue's first document is due, so the rows find all queues
// also after a crash. Open loads the queues with changes that only the journal has.

// coldQueues finds, loads and evicts the queues that are not in memory. It is a [queuesched.Cold].
type coldQueues struct {
	table *queueTable
	db    *database
	txn   *txn
	sched *queuesched.Scheduler
	names *knownNames

	evictor   evictor
	opened    uint64 // the last commit before Open
	openedAt  int64
	served    int64               // when queues with rows from before Open were last served at the slots: see loadMeta
	places    []coldPlace         // by crawl
	totals    map[uint32]struct{} // crawls whose counts the txn has changed
	hasPauses bool                // there may be rows of pauses
	recheck   []byte              // key of the wake row at which Recheck continues
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
	return c.named([]byte(text), &n)
}

// named finds the queue of a crawl by the name that docNamer.keyName returned for its key. It loads
// the queue and returns the scheduler's number of it; 0: there is none.
func (c *coldQueues) named(crawlID []byte, n *name) (id uint32, err error) {
	no, err := c.number(n)
	if c.txn.b == nil { // no txn has begun: a later one must not use these iterators
		c.txn.closeReads()
	}
	if err != nil || no == 0 {
		return 0, err
	}
	return c.load(crawlID, no)
}

// number is like named, but returns the queue's number on disk and loads nothing.
func (c *coldQueues) number(n *name) (no uint32, err error) {
	if c.table.before == 0 && !c.table.keys.has(n) {
		return 0, nil // the index was empty at Open, and there was no such queue since
	}
	row, err := c.txn.row(n)
	if err != nil || row == nil {
		return 0, err
	}
	if len(row) != 4 {
		return 0, errRow
	}
	return binary.BigEndian.Uint32(row), nil
}

// load loads the queue of a crawl that has the given number on disk, unless it is in memory. It
// returns the scheduler's number of the queue; 0: there is none.
func (c *coldQueues) load(crawlID []byte, no uint32) (id uint32, err error) {
	return c.loadBy(c.read, crawlID, no)
}

// loadBy is like load, but reads the row with the given function.
func (c *coldQueues) loadBy(
	read func(crawl, no uint32) (*queueRecord, error), crawlID []byte, no uint32,
) (id uint32, err error) {
	if id = c.table.byNumber(no); id != 0 {
		return id, nil
	}
	crawl, ok := c.sched.FindCrawl(crawlID)
	if !ok {
		return 0, nil
	}
	q, err := read(crawl, no)
	if err != nil || q == nil {
		return 0, err
	}
	return c.loadRow(no, q, c.table.now())
}

// loadAny is like load, for a queue whose crawl the caller does not know.
func (c *coldQueues) loadAny(no uint32) (id uint32, err error) {
	if id = c.table.byNumber(no); id != 0 {
		return id, nil
	}
	q, err := c.readRow(numberKey(queueRow, no))
	for crawl := uint32(0); q == nil && err == nil && crawl < max(1, c.sched.CrawlBound()); crawl++ {
		q, err = c.readRow(freshKey(crawl, no))
	}
	if q == nil || err != nil {
		return 0, err
	}
	return c.loadRow(no, q, c.table.now())
}

// read returns the row of a cold queue of a crawl, or nil if there is none.
func (c *coldQueues) read(crawl, no uint32) (*queueRecord, error) {
	q, err := c.readRow(numberKey(queueRow, no))
	if q == nil && err == nil {
		q, err = c.readRow(freshKey(crawl, no))
	}
	return q, err
}

// readRow returns the row of a queue, or nil if there is none.
func (c *coldQueues) readRow(key []byte) (*queueRecord, error) {
	row, err := c.db.get(key)
	if err != nil || row == nil {
		return nil, err
	}
	q, err := readQueue(row)
	q.fresh = key[0] == freshRow
	return &q, err
}

// loadRow adds a cold queue to those in memory, and returns its number in the scheduler.
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
		stored: true, fresh: q.fresh, hasIDs: q.hasIDs, owners: !q.ownerless, set: q.isSet(now)}
	if q.Scheduled == 0 {
		one.due, one.cursor = queuesched.Never, lastPlace
	}
	id = c.sched.Load(crawl, q.key, q.Persisted, one.due, q.wake, now)
	c.table.add(id, one)
	c.evictor.fitNames()
	if q.branches != nil && one.cursor != (place{}) {
		if !c.table.branches.Read(id, q.branches, placeOfSeq) {
			return 0, errRow
		}
		c.sched.SetBranched(id, now)
	}
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

// loadSome loads up to n queues of a crawl that may be served by until, those that have waited
// longest first.
func (c *coldQueues) loadSome(crawl uint32, n int, until int64) (loaded int, err error) {
	now := c.table.now()
	w, err := c.wait(crawl)
	if err != nil {
		return 0, err
	}
	defer w.close()
	for w.at() != queuesched.NoMoment && w.at().MS() <= until && loaded < n {
		if no := w.number(); c.table.byNumber(no) == 0 {
			q, err := w.row()
			if err == nil && q != nil {
				_, err = c.loadRow(no, q, now)
				loaded++
			}
			if err != nil {
				return loaded, err
			}
		}
		if err := w.next(); err != nil {
			return loaded, err
		}
	}
	c.sched.WakeCrawl(crawl, w.at())
	return loaded, nil
}

const (
	maxOverranLooks = 500  // rows that one call of LoadOverran reads
	overranRests    = 1000 // ms for which LoadOverran reads nothing after it has found nothing
)

// LoadOverran is [queuesched.Cold.LoadOverran].
func (c *coldQueues) LoadOverran(crawl uint32, n int, until int64) (loaded int) {
	place, now := c.placeOf(crawl), c.table.now()
	if c.db.failed != nil || place.rests > now && place.rests <= now+overranRests {
		return 0
	}
	from := place.overran
	loaded, err := c.loadOverran(crawl, n, until)
	if loaded == 0 && err == nil && from != (wakePlace{}) && place.overran == (wakePlace{}) && place.rests <= now {
		loaded, err = c.loadOverran(crawl, n, until) // the first call did not begin with the first row
	}
	if err != nil {
		c.db.fail(err)
	}
	return loaded
}

func (c *coldQueues) loadOverran(crawl uint32, n int, until int64) (loaded int, err error) {
	now, place := c.table.now(), c.placeOf(crawl)
	if place.overran == (wakePlace{}) {
		place.some, place.rests = false, 0
	}
	from := wakePlace{at: queuesched.MomentOf(now + 1)}
	if from.before(place.overran) {
		from = place.overran
	}
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: wakeKey(nil, crawl, from),
		UpperBound: wakeKey(nil, crawl, wakePlace{at: queuesched.MomentOf(until + 1)})})
	if err != nil {
		return 0, err
	}
	defer it.Close()
	rows := queueRows{db: c.db}
	defer rows.close()
	ok := it.First()
	for looks := maxOverranLooks; ok && looks > 0 && loaded < n; looks-- {
		_, p, err := readWakeKey(it.Key())
		if err != nil {
			return loaded, err
		}
		if p.at.OfOverran() && c.table.byNumber(p.no) == 0 {
			q, err := rows.read(numberKey(queueRow, p.no))
			if err == nil && q != nil && q.wake == p.at {
				_, err = c.loadRow(p.no, q, now)
				place.some = true
				loaded++
			}
			if err != nil {
				return loaded, err
			}
		}
		place.overran = wakePlace{p.at, p.no + 1}
		ok = it.Next()
	}
	if !ok {
		place.overran = wakePlace{}
		if !place.some {
			place.rests = now + overranRests
		}
	}
	return loaded, it.Error()
}

// queueRows reads the rows of several queues. Reads in the order of the keys cost less than a
// readRow of each.
type queueRows struct {
	db      *database
	filters bool             // many of the rows do not exist, so it is worth it to read the tables' filters
	it      *pebble.Iterator // over rows with the key prefix queueRow
	fresh   *pebble.Iterator // over those with freshRow
	q       queueRecord
}

// read returns the row of a queue, or nil if there is none. The result is valid until the next
// read.
func (r *queueRows) read(key []byte) (q *queueRecord, err error) {
	it := &r.it
	if key[0] == freshRow {
		it = &r.fresh
	}
	if *it == nil {
		if *it, err = r.db.NewIter(&pebble.IterOptions{
			LowerBound: key[:1], UpperBound: []byte{key[0] + 1}, UseL6Filters: r.filters}); err != nil {
			return nil, err
		}
	}
	if !(*it).SeekPrefixGE(key) {
		return nil, (*it).Error()
	}
	value, err := (*it).ValueAndErr()
	if err == nil {
		r.q, err = readQueue(value)
		r.q.fresh = key[0] == freshRow
	}
	return &r.q, err
}

// of returns the queueRow or the freshRow of a queue of a crawl, or nil if it has neither.
func (r *queueRows) of(crawl, no uint32) (*queueRecord, error) {
	q, err := r.read(numberKey(queueRow, no))
	if q == nil && err == nil {
		q, err = r.read(freshKey(crawl, no))
	}
	return q, err
}

func (r *queueRows) close() {
	for _, it := range []*pebble.Iterator{r.it, r.fresh} {
		if it != nil {
			it.Close() // the reads have returned its errors
		}
	}
}

// HasRoom is [queuesched.Cold.HasRoom]. Queues with documents in transit stay in memory. HasRoom
// allows fewQueues bytes of other queues beside them, even if the budget is used up.
func (c *coldQueues) HasRoom() bool {
	used := c.evictor.used()
	return used < c.evictor.budget ||
		used-int64(c.sched.Total().URLs[queuesched.InTransit])*1000 < fewQueues
}

const fewQueues = 64 << 10 // bytes

// open prepares for queues that are not in memory.
func (c *coldQueues) open(now, served int64) error {
	c.evictor = evictor{sched: c.sched, queues: &c.table.queues, numbers: &c.table.numbers, names: c.names,
		// the garbage collector takes the rest
		budget: max(0, c.db.cfg.Memory/5*3-c.table.keys.mostBytes()-c.table.numbers.mostBytes())}
	c.totals = map[uint32]struct{}{}
	c.openedAt, c.served = now, served
	c.sched.KeepCold(c)
	it, err := c.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{pauseRow}, UpperBound: []byte{queueRow + 1}})
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
