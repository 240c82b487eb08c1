package disk

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A purge ends partitions and writes no rows of their documents, so a stop is quick however many
// documents there are. Later, clearNowAndThen writes a completed document's row for each of them
// and deletes its body. It begins with a partition once none of the partition's documents is open,
// and scans the order of the partition's queue, a few rows at a time. Then it marks the partition
// as not purged, since each of its documents is completed by its own row. Until then purgedRow is
// on disk, so after a restart the work begins again with the rows that are left. Callers see the
// same documents before, during and after a clearing.

const (
	clearHold  = 200                   // rows that a step reads, which takes about 1 ms
	clearPause = 20 * time.Millisecond // before each step
	clearAgain = time.Second           // before a step is repeated after an error, such as a full disk
)

// clearing is the work on purged partitions. The store's lock guards all but wake.
type clearing struct {
	docs       *documents
	wake       chan struct{}
	pause      time.Duration
	partitions []uint32          // numbers of those to clear, and of some that were removed or reopened since
	scans      uint64            // number of scans begun
	scanned    map[uint32]uint64 // by number of a queue on disk: its last complete scan
	queue      uint32            // number on disk of the queue whose scan is under way; 0: none is
	next       []byte            // key with which that scan continues
}

func newClearing() clearing {
	return clearing{wake: make(chan struct{}, 1), pause: clearPause, scanned: map[uint32]uint64{}}
}

// later queues a partition for clearing if it is purged and none of its documents is open.
func (l *clearing) later(no uint32) {
	c := l.docs.crawls.partitions[no]
	if !c.isPurged() {
		return
	}
	if c.scan == 0 {
		l.partitions = append(l.partitions, no)
	}
	c.scan = l.scans + 1
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// isPurged reports whether all bodies that a partition has in the order are of documents that were
// purged with it.
func (c *partition) isPurged() bool { return c.purged && c.docs == c.ended }

// clearNowAndThen clears partitions until the store is closed.
func (s *Store) clearNowAndThen() {
	for {
		select {
		case <-s.db.closing:
			return
		case <-s.crawls.clearing.wake:
		}
		s.base.Mu.Lock()
		pause := s.crawls.clearing.pause
		s.base.Mu.Unlock()
		for more, wait := true, pause; more; {
			select {
			case <-s.db.closing:
				return
			case <-time.After(wait):
			}
			var err error
			if more, err = s.clearSome(); err != nil {
				more, wait = true, clearAgain
			} else {
				wait = pause
			}
		}
	}
}

// clearSome does one step. It does not wait for a sync: a step that a crash undoes is repeated.
func (s *Store) clearSome() (more bool, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	l := &s.crawls.clearing
	if len(l.partitions) == 0 {
		return false, s.db.usable()
	}
	if err := s.txn.begin(); err != nil {
		return true, err
	}
	if err := l.some(); err != nil {
		return true, s.txn.abort(err)
	}
	if len(l.partitions) == 0 {
		l.partitions, l.scanned = nil, map[uint32]uint64{}
	}
	return len(l.partitions) > 0, s.txn.commitLazily()
}

// some does one step in the txn.
func (l *clearing) some() (err error) {
	it, err := l.docs.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{planRow}, UpperBound: []byte{planRow + 1}})
	if err != nil {
		return err
	}
	defer func() {
		if closing := it.Close(); err == nil {
			err = closing
		}
	}()
	for left := clearHold; left > 0 && len(l.partitions) > 0; left-- {
		if l.queue == 0 {
			l.begin()
			continue
		}
		if left, err = l.scanSome(it, left); err != nil {
			return err
		}
	}
	return nil
}

// begin ends the work on a partition, or begins the scan of its queue.
func (l *clearing) begin() {
	last := len(l.partitions) - 1
	no := l.partitions[last]
	c := l.docs.crawls.partitions[no]
	switch {
	case c == nil || c.scan == 0: // removed
	case !c.isPurged(): // later queues it again
		c.scan = 0
	case l.scanned[c.queue] < c.scan:
		l.scans++
		l.queue = c.queue
		l.next = append(l.next[:0], numberKey(planRow, l.queue)...)
		return
	default:
		c.purged, c.scan = false, 0
		l.docs.txn.b.Delete(numberKey(purgedRow, no), nil)
	}
	l.partitions = l.partitions[:last]
}

// scanSome continues the scan and reads up to left rows. It returns how many of them it did not
// need.
func (l *clearing) scanSome(it *pebble.Iterator, left int) (int, error) {
	if l.docs.crawls.ofQueue[l.queue] == 0 { // deleted since, or no document of it is in a crawl
		l.queue = 0
		return left, nil
	}
	limit := numberEnd(planRow, l.queue)
	for at := it.SeekGEWithLimit(l.next, limit); at == pebble.IterValid; at = it.NextWithLimit(limit) {
		if left--; left < 0 {
			l.next = append(l.next[:0], it.Key()...)
			return 0, nil
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return 0, err
		}
		if err := l.clearRow(it.Key(), value); err != nil {
			return 0, err
		}
	}
	l.scanned[l.queue], l.queue = l.scans, 0
	return left, it.Error()
}

// clearRow completes the document of a body if it was purged with its partition.
func (l *clearing) clearRow(key, value []byte) error {
	p, err := readPlan(value)
	if err != nil || p.member == 0 {
		return err
	}
	all := l.docs.crawls.partitions
	if len(key) != 1+4+placeLen || int(p.member) >= len(all) || all[p.member] == nil {
		return errRow
	}
	c := all[p.member]
	if !c.isPurged() {
		return nil
	}
	n := l.docs.namer.nameOfPlan(l.queue, &p)
	d := doc{completed: true, last: c.lastOfPurged(), created: p.created, member: p.member,
		id: p.id, url: p.url, lasting: keep(lastingOf(p.packed))}
	copy(d.at[:], key[1+4:])
	l.docs.writeRow(&n, &d)
	l.docs.unplan(&n, &d)
	return nil
}
