package disk

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// Check compares what is counted with what is there: each scheduled document, and each that has ended with its partition, has one
// place in its queue, and nothing else has.
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
			if s.byNo[no] == 0 {
				return fmt.Errorf("queue %d has documents and is not there", no)
			}
		}
	}
	for no, id := range s.byNo {
		k := s.base.Sched.Persist(id)
		if k.Scheduled != scheduled[no] || k.Completed != completed[no]+over[no] || plans[no] != scheduled[no]+over[no] {
			return fmt.Errorf("queue %d (%s): counted are %d scheduled and %d completed; there are %d and %d in %d places, and %d",
				no, s.base.Sched.Key(id), k.Scheduled, k.Completed, scheduled[no], over[no], plans[no], completed[no])
		}
	}
	if err := s.checkCrawlsLocked(); err != nil {
		return err
	}
	if n := s.base.Sched.Total().URLs[queuesched.InTransit]; n != uint64(s.transits.Len()) {
		return fmt.Errorf("%d are counted as in transit; there are %d", n, s.transits.Len())
	}
	return nil
}

// Hurry has everything happen that usually takes many URLs.
func (s *Store) Hurry() {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	s.journal.most, s.memtables.most = 100, 64<<10
	s.clearing.pause = time.Microsecond
}

// Flush has what is in memory written to a table, and tables compacted, some time.
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

// Put sets a row below the store.
func (s *Store) PutRow(key, value string) error {
	return s.db.Set([]byte(key), []byte(value), pebble.Sync)
}

// SettleNext waits for the commit after the last one to be on disk, as a purge does that has just done a portion.
func (s *Store) SettleNext() error { return s.waitSync(nil, s.journal.no+1) }

// Logged is how many bytes were written to the log since the store was opened.
func (s *Store) Logged() uint64 { return s.db.Metrics().WAL.BytesIn }
