package disk

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// New queues with a due document wait in the order of their numbers. Such a queue has one row, its
// freshRow, in place of a queueRow and a wakeRow. The store replaces it by these two when the queue
// has to wait for another moment, or when it writes the row of a queue that has to stay in memory.

const freshKeyLen = 1 + 4 + 4

func freshKey(crawl, no uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{freshRow}, crawl), no)
}

// leaveFresh deletes the freshRow of a queue, if it has one. The queue has no row then.
func (c *coldQueues) leaveFresh(id uint32) {
	q := c.table.at(id)
	if !q.fresh {
		return
	}
	c.txn.b.Delete(c.table.rowKey(id), nil)
	q.fresh, q.wake = false, queuesched.NoMoment
}

// coldPlace says how far the store has loaded the cold queues of a crawl: the queues of all rows
// before it are in memory.
type coldPlace struct {
	wake    wakePlace
	fresh   uint32    // number of a queue
	overran wakePlace // where LoadOverran continues; queues before it may be cold
	some    bool      // LoadOverran has found a queue since it began with the first row
	rests   int64     // LoadOverran reads nothing until then, as it has found nothing, ms; 0: it reads
}

// waiting iterates over the cold queues of a crawl that have something scheduled, in the order in
// which they may be served. It begins at the crawl's place. It moves the place to each row that it
// reads, or behind all numbers if there is no further row. So the next search does not pass again
// the deleted rows before that row: after Open these may be the rows of millions of queues.
type waiting struct {
	place        *coldPlace
	wakes, fresh *pebble.Iterator
	rows         queueRows
	wake         wakePlace   // place in the current wake row; NoMoment: there is none
	no           uint32      // number of the queue of the current freshRow
	first        queueRecord // the current freshRow; if its wake is NoMoment, there is none
}

func (c *coldQueues) wait(crawl uint32) (w waiting, err error) {
	w.place, w.rows.db = c.placeOf(crawl), c.db
	if w.wakes, err = c.db.NewIter(&pebble.IterOptions{
		LowerBound: wakeKey(nil, crawl, w.place.wake), UpperBound: numberEnd(wakeRow, crawl)}); err != nil {
		return w, err
	}
	if w.fresh, err = c.db.NewIter(&pebble.IterOptions{
		LowerBound: freshKey(crawl, w.place.fresh), UpperBound: numberEnd(freshRow, crawl)}); err == nil {
		w.wakes.First()
		w.fresh.First()
		if err = w.readWake(); err == nil {
			err = w.readFresh()
		}
	}
	if err != nil {
		w.close()
	}
	return w, err
}

// close ends w. The reads have returned its errors.
func (w *waiting) close() {
	w.wakes.Close()
	if w.fresh != nil {
		w.fresh.Close()
	}
	w.rows.close()
}

func (w *waiting) readWake() (err error) {
	if w.wake = (wakePlace{at: queuesched.NoMoment}); w.wakes.Valid() {
		_, w.wake, err = readWakeKey(w.wakes.Key())
	} else {
		err = w.wakes.Error()
	}
	if err == nil {
		w.place.wake = w.wake
	}
	return err
}

func (w *waiting) readFresh() error {
	if w.first.wake = queuesched.NoMoment; !w.fresh.Valid() {
		if w.fresh.Error() == nil {
			w.place.fresh = math.MaxUint32
		}
		return w.fresh.Error()
	}
	value, err := w.fresh.ValueAndErr()
	if err != nil || len(w.fresh.Key()) != freshKeyLen {
		return cmp.Or(err, errRow)
	}
	w.no = binary.BigEndian.Uint32(w.fresh.Key()[1+4:])
	w.place.fresh = w.no
	w.first, err = readQueue(value)
	w.first.fresh = true
	return err
}

// at returns when the next queue may be served; NoMoment: there is none.
func (w *waiting) at() queuesched.Moment { return min(w.wake.at, w.first.wake) }

// isFresh reports whether the next queue has a freshRow.
func (w *waiting) isFresh() bool { return w.first.wake <= w.wake.at }

// number returns the number of the next queue.
func (w *waiting) number() uint32 {
	if w.isFresh() {
		return w.no
	}
	return w.wake.no
}

// row returns the row of the next queue; nil: the caller must pass over the queue.
func (w *waiting) row() (*queueRecord, error) {
	if w.isFresh() {
		return &w.first, nil
	}
	q, err := w.rows.read(numberKey(queueRow, w.wake.no))
	if err != nil || q == nil || q.wake != w.wake.at {
		return nil, err // it has another wake row
	}
	return q, nil
}

// next passes the next queue.
func (w *waiting) next() error {
	if w.isFresh() {
		w.fresh.Next()
		return w.readFresh()
	}
	w.wakes.Next()
	return w.readWake()
}
