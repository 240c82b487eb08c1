package disk

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// Check compares the counters with the rows. It also checks that each scheduled document and each
// purged document has exactly one place in its queue, and that nothing else has a place.
func (s *Store) Check() error {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	plans := map[uint32]uint32{}
	if err := s.each(planRow, func(key, value []byte) error {
		_, err := readPlan(value)
		plans[readNo(key)]++
		return err
	}); err != nil {
		return err
	}
	scheduled, completed, over := map[uint32]uint32{}, map[uint32]uint32{}, map[uint32]uint32{}
	if err := s.each(docRow, func(key, value []byte) error {
		n, err := readName(key[1:])
		if err != nil {
			return err
		}
		d, err := s.readLocked(&n, value)
		if err != nil || d.completed && !d.purged {
			completed[readNo(key)]++
			return err
		}
		if d.purged {
			over[readNo(key)]++
		} else {
			scheduled[readNo(key)]++
		}
		_, closer, err := s.db.Get(planKey(nil, readNo(key), &d.at))
		if err != nil {
			return fmt.Errorf("it is scheduled and has no place: %w", err)
		}
		return closer.Close()
	}); err != nil {
		return err
	}
	for _, no := range [][]uint32{keys(plans), keys(scheduled), keys(completed)} {
		for _, no := range no {
			if s.queues.byNumber(no) == 0 {
				return fmt.Errorf("queue %d has documents and is not there", no)
			}
		}
	}
	for id := uint32(1); id < s.base.Sched.Bound(); id++ {
		if !s.base.Sched.Exists(id) {
			continue
		}
		no, k := s.queueAt(id).no, s.base.Sched.Persist(id)
		if k.Scheduled != scheduled[no] || k.Completed != completed[no]+over[no] ||
			plans[no] != scheduled[no]+over[no] {
			return fmt.Errorf(
				"queue %d (%s): counted are %d scheduled and %d completed; there are %d and %d in %d places, and %d",
				no, s.base.Sched.Key(id), k.Scheduled, k.Completed, scheduled[no], over[no], plans[no], completed[no])
		}
	}
	if err := s.checkCrawlsLocked(); err != nil {
		return err
	}
	if n := s.base.Sched.Total().URLs[queuesched.InTransit]; n != uint64(s.transits.length()) {
		return fmt.Errorf("%d are counted as in transit; there are %d", n, s.transits.length())
	}
	return nil
}

// Hurry sets low limits, so that what usually takes many URLs happens after a few: flushes,
// rewriting the journal, clearing.
func (s *Store) Hurry() {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	s.journal.most, s.memtables.most = 100, 64<<10
	s.clearing.pause = time.Microsecond
}

// Flush begins to flush the memtables, and compacts all tables.
func (s *Store) Flush() error {
	if _, err := s.db.AsyncFlush(); err != nil {
		return err
	}
	return s.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false)
}

func readNo(key []byte) uint32 {
	n, _ := readName(append(append([]byte{}, key[1:5]...), make([]byte, hashLen)...))
	return n.queue
}

func keys(m map[uint32]uint32) (all []uint32) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// PutRow sets a row in the database, without the store's knowledge.
func (s *Store) PutRow(key, value string) error {
	return s.db.Set([]byte(key), []byte(value), pebble.Sync)
}

// SettleNext waits until the commit after the last one is on disk, as a purge does after a portion.
func (s *Store) SettleNext() error { return s.waitSync(nil, s.journal.no+1) }

// Logged returns how many bytes were written to the log since the store was opened.
func (s *Store) Logged() uint64 { return s.db.Metrics().WAL.BytesIn }
