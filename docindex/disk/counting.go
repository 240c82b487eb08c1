package disk

import (
	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// After Open, counting counts the documents of cold queues that are due in the future. A wake row
// does not say when each document is due, so counting takes all documents of a queue as due when
// the queue wakes.
type counting struct {
	rows   *pebble.Snapshot    // as Open found them; nil: the counting is done
	next   []byte              // key of the wake row at which it continues
	from   int64               // only documents that are due after this moment count, ms
	loaded map[uint32]struct{} // queues that were loaded before their row was counted
}

// of returns the moment at which counting has taken the documents of a queue that is being loaded as
// due; 0: it has not counted them as due later.
func (c *counting) of(crawl uint32, p wakePlace) int64 {
	if c.rows != nil && string(wakeKey(nil, crawl, p)) >= string(c.next) {
		c.loaded[p.no] = struct{}{}
		return 0
	}
	if p.at.MS() <= c.from || p.at == queuesched.NoMoment {
		return 0
	}
	return p.at.MS()
}

const countHold = 10_000 // rows that one call of some reads, which takes some ms

// some counts the documents of the next rows. more reports whether there are further rows.
func (c *counting) some(sched *queuesched.Scheduler, now int64) (more bool, err error) {
	if c.rows == nil {
		return false, nil
	}
	it, err := c.rows.NewIter(&pebble.IterOptions{LowerBound: c.next, UpperBound: []byte{wakeRow + 1}})
	if err != nil {
		return false, err
	}
	defer it.Close()
	left := countHold
	for ok := it.First(); ok; {
		crawl, p, err := readWakeKey(it.Key())
		if err != nil {
			return false, err
		}
		if p.at.MS() <= c.from {
			ok = it.SeekGE(wakeKey(nil, crawl, wakePlace{at: queuesched.MomentOf(c.from + 1)}))
			continue
		}
		if left--; left < 0 {
			c.next = append(c.next[:0], it.Key()...)
			return true, nil
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return false, err
		}
		r := reader{b: value}
		if _, loaded := c.loaded[p.no]; !loaded {
			sched.CountLaterOf(crawl, p.at.MS(), now, r.uint()>>1)
		}
		ok = it.Next()
	}
	c.end()
	return false, it.Error()
}

// end ends the counting and closes its snapshot. Iterators on the snapshot stay usable.
func (c *counting) end() {
	if c.rows != nil {
		c.rows.Close()
	}
	c.rows, c.loaded = nil, nil
}

// countNowAndThen repeats some, with the lock released in between, until all rows are counted or
// the store is closed.
func (s *Store) countNowAndThen() {
	for more := true; more; {
		s.base.Mu.Lock()
		var err error
		if more, err = s.queues.cold.counting.some(s.base.Sched, s.base.Now()); err != nil {
			s.db.fail(err)
		}
		if s.db.closed || err != nil {
			s.queues.cold.counting.end()
			more = false
		}
		s.base.Mu.Unlock()
	}
}
