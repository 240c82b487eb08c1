package disk

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// upgrade writes the rows that find, order and count queues if an older version wrote the store. A
// crash repeats it: the version row comes last.
func (l *loading) upgrade() error {
	s := l.s
	if !s.queues.cold.upgrades {
		s.queues.cold.opened = s.queues.journal.no
		return nil
	}
	// Pebble stops writes at 40 tables of the first level over one key, until a compaction has run.
	s.db.merging.begin()
	u := upgrading{l: l, crawls: map[string]uint32{}, b: s.db.NewBatch()}
	for _, kind := range []byte{setRow, totalRow, wakeRow} {
		u.b.DeleteRange([]byte{kind}, []byte{kind + 1}, nil)
	}
	u.b.DeleteRange(numberKey(docRow, 0), numberEnd(docRow, 0), nil)
	if err := s.db.each(queueRow, u.queue); err != nil {
		return err
	}
	for no, n := range u.totals {
		u.b.Set(numberKey(totalRow, uint32(no)), appendTotals(nil, u.names[no], n), nil)
	}
	if err := u.apply(); err != nil {
		return err
	}
	u.b.Close()
	l.changes = nil // the rows contain them
	s.queues.cold.opened = s.queues.journal.no
	return s.writeVersion()
}

// upgrading is the state of an upgrade.
type upgrading struct {
	l      *loading
	b      *pebble.Batch
	crawls map[string]uint32 // numbers by crawl ID
	names  []string
	totals []queuesched.Counts
}

const upgradeBatch = 1 << 20 // bytes that an upgrade writes at a time, about

func (u *upgrading) queue(key, value []byte) error {
	s := u.l.s
	q, err := readQueue(value)
	if err != nil || len(key) != 1+4 {
		return errRow
	}
	no := binary.BigEndian.Uint32(key[1:])
	u.l.apply(&q, u.l.changes[no])
	crawl, known := u.crawls[string(q.crawl)]
	if !known {
		crawl = uint32(len(u.names))
		u.crawls[string(q.crawl)] = crawl
		u.names, u.totals = append(u.names, string(q.crawl)), append(u.totals, queuesched.Counts{})
	}
	n := &u.totals[crawl]
	n.Queues++
	n.URLs[queuesched.Scheduled] += uint64(q.Scheduled)
	n.URLs[queuesched.Completed] += uint64(q.Completed)
	q.asOf, q.due, q.cursor, q.wake = s.queues.journal.no, 0, place{}, queuesched.NoMoment
	if q.Scheduled > 0 {
		n.Active++
		q.wake = 0
		u.b.Set(wakeKey(nil, crawl, wakePlace{0, no}), binary.AppendUvarint(nil, uint64(q.Scheduled)<<1), nil)
	}
	if q.isSet(u.l.now) {
		u.b.Set(numberKey(setRow, no), nil, nil)
	}
	name := s.docs.namer.keyName(q.crawl, q.key)
	u.b.Set(name.docKey(nil), binary.BigEndian.AppendUint32(nil, no), nil)
	u.b.Set(numberKey(queueRow, no), q.append(nil), nil)
	if u.b.Len() < upgradeBatch {
		return nil
	}
	return u.apply()
}

// apply writes the batch, and begins the next one.
func (u *upgrading) apply() error {
	if err := u.l.s.db.Apply(u.b, pebble.NoSync); err != nil {
		return err
	}
	u.b.Close()
	u.b = u.l.s.db.NewBatch()
	return nil
}
