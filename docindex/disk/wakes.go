package disk

import (
	"cmp"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// wakePlace is the place of a queue among the waiting queues of its crawl: by moment, then by
// number.
type wakePlace struct {
	at queuesched.Moment
	no uint32
}

func (p wakePlace) before(q wakePlace) bool { return p.compare(q) < 0 }

func (p wakePlace) compare(q wakePlace) int {
	return cmp.Or(cmp.Compare(p.at, q.at), cmp.Compare(p.no, q.no))
}

const wakeKeyLen = 1 + 4 + 8 + 4

func wakeKey(dst []byte, crawl uint32, p wakePlace) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, wakeRow), crawl)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, uint64(p.at)), p.no)
}

func readWakeKey(b []byte) (crawl uint32, p wakePlace, err error) {
	if len(b) != wakeKeyLen {
		return 0, p, errRow
	}
	p = wakePlace{at: queuesched.Moment(binary.BigEndian.Uint64(b[5:])), no: binary.BigEndian.Uint32(b[13:])}
	return binary.BigEndian.Uint32(b[1:]), p, nil
}

// placeOf returns the place of a crawl.
func (c *coldQueues) placeOf(crawl uint32) *coldPlace {
	for int(crawl) >= len(c.places) {
		c.places = append(c.places, coldPlace{})
	}
	return &c.places[crawl]
}

const (
	maxRechecked = 1000 // rows that one call of Recheck reads
	// maxWait is the longest time in ms for which a queue with a due URL stays cold. Then the store
	// loads it and looks again: settings may have changed meanwhile.
	maxWait = int64(10 * 60_000)
)

// Recheck is [queuesched.Cold.Recheck].
func (c *coldQueues) Recheck(first bool, now int64) (more bool) {
	if c.db.failed != nil {
		return false
	}
	if first {
		c.recheck = []byte{wakeRow}
	}
	more, err := c.recheckSome(now)
	if err == nil && c.txn.b == nil {
		err = c.txn.trim(now)
	}
	if err != nil {
		c.db.fail(err)
		return false
	}
	return more
}

func (c *coldQueues) recheckSome(now int64) (more bool, err error) {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: c.recheck, UpperBound: []byte{wakeRow + 1}})
	if err != nil {
		return false, err
	}
	defer it.Close()
	rows := queueRows{db: c.db}
	defer rows.close()
	left := maxRechecked
	for ok := it.First(); ok; {
		crawl, p, err := readWakeKey(it.Key())
		if err != nil {
			return false, err
		}
		if left--; left < 0 {
			c.recheck = append(c.recheck[:0], it.Key()...)
			return true, nil
		}
		switch {
		case p.at.MS() <= now:
			ok = it.SeekGE(wakeKey(nil, crawl, wakePlace{at: queuesched.MomentOf(now + 1)}))
			continue
		case p.at.MS() > now+maxWait:
			ok = it.SeekGE(numberEnd(wakeRow, crawl))
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return false, err
		}
		r := reader{b: value}
		if r.uint()&wakesByRule != 0 && c.table.byNumber(p.no) == 0 {
			q, err := rows.read(numberKey(queueRow, p.no))
			if err != nil {
				return false, err
			}
			if q != nil && q.wake == p.at {
				if _, err := c.loadRow(p.no, q, now); err != nil {
					return false, err
				}
			}
		}
		ok = it.Next()
	}
	return false, it.Error()
}

// A wake row has the number of scheduled documents of the queue, shifted by one bit. The lowest bit
// is set if the queue waits for anything else than its first document to be due.
const wakesByRule = 1

// setWake writes the wake row of a queue at a moment, or moves it there; NoMoment: it deletes the
// row. n is the number of scheduled documents. If the row's moment has passed, setWake does not
// update n in it.
func (c *coldQueues) setWake(id uint32, at queuesched.Moment, byRule bool, n uint32, now int64) {
	q, t := c.table.at(id), c.txn
	if q.wake == at && (q.wakes == n || at == queuesched.NoMoment || at.MS() <= now) {
		return
	}
	crawl := c.sched.CrawlNo(id)
	if q.wake != queuesched.NoMoment && q.wake != at {
		t.key = wakeKey(t.key[:0], crawl, wakePlace{q.wake, q.no})
		t.b.Delete(t.key, nil)
	}
	if q.wake, q.wakes = at, n; at == queuesched.NoMoment {
		return
	}
	value := uint64(n) << 1
	if byRule {
		value |= wakesByRule
	}
	t.key = wakeKey(t.key[:0], crawl, wakePlace{at, q.no})
	t.value = binary.AppendUvarint(t.value[:0], value)
	t.set()
}
