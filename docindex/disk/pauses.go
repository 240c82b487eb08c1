package disk

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// FindHost is [queuesched.Cold.FindHost].
func (c *cold) FindHost(name []byte) (h queuesched.KnownHost, ok bool) {
	s := (*Store)(c)
	if !c.cold.hasPauses || s.failed != nil {
		return h, false
	}
	row, err := s.get(append([]byte{pauseRow}, name...))
	if err == nil && row != nil {
		h, ok, err = s.readPause(row)
	}
	if err != nil {
		s.failLocked(err)
	}
	return h, ok
}

// keepGap is how long a host's gap is kept after the host's pause has ended, ms.
const keepGap = int64(24 * time.Hour / time.Millisecond)

// readPause reads what the slots and clients have learned of a host. If the slots were in use shortly
// before a restart, they may have requested the host since its pause ended, so its gap counts from
// the restart. What was learned before a restart binds the slots, too.
func (s *Store) readPause(row []byte) (h queuesched.KnownHost, ok bool, err error) {
	r := reader{b: row}
	until, commit := r.int(), int64(0)
	h.Gap = r.int()
	if len(r.b) > 0 { // before version 7 there is no more
		h.Backoff, commit = r.int(), r.int()
	}
	if r.bad {
		return h, false, errRow
	}
	now, gap := s.base.Now(), max(h.Gap, h.Backoff)
	switch {
	case until+keepGap <= now:
		return h, false, nil
	case uint64(commit) > s.cold.opened: // while the pause binds, the host is in memory
		return h, gap > 0, nil
	}
	if until <= s.cold.openedAt && s.cold.served > 0 && gap > 0 {
		until = s.cold.served + gap
	}
	if until > now {
		h.Paused, h.Restored = until, until
	}
	return h, until > now || gap > 0, nil
}

// keepPauseLocked keeps on disk until when a host is left alone, and the gaps that it wants: that
// which the slots have learned, and that which clients' reports ask for. commit is the number of the
// commit that writes it.
func (s *Store) keepPauseLocked(host []byte, until, gap, backoff int64, commit uint64) {
	t := &s.txn
	t.key = append(append(t.key[:0], pauseRow), trimDot(host)...)
	t.value = t.value[:0]
	for _, v := range []int64{until, gap, backoff, int64(commit)} {
		t.value = binary.AppendVarint(t.value, v)
	}
	t.set()
	s.cold.hasPauses = true
}

const pauseHold = 10_000 // rows that dropSomePauses reads, which takes some ms

// dropPauses deletes the rows of pauses that matter no more, once after Open.
func (s *Store) dropPauses() {
	for from := []byte{pauseRow}; from != nil; {
		from = s.dropSomePauses(from)
	}
}

// dropSomePauses is a step of dropPauses. It returns the key to go on with, or nil.
func (s *Store) dropSomePauses(from []byte) (next []byte) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if s.usableLocked() != nil || s.space.check() != nil {
		return nil
	}
	next, err := s.dropPausesLocked(from)
	if err != nil {
		s.failLocked(err)
		return nil
	}
	return next
}

func (s *Store) dropPausesLocked(from []byte) (next []byte, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: []byte{pauseRow + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	b, left, now := s.db.NewBatch(), pauseHold, s.base.Now()
	defer b.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if left--; left < 0 {
			next = bytes.Clone(it.Key())
			break
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		if r := (reader{b: value}); r.int()+keepGap <= now && !r.bad {
			b.Delete(it.Key(), nil)
		}
	}
	if err = it.Error(); err != nil || b.Empty() {
		return next, err
	}
	return next, s.db.Apply(b, pebble.NoSync)
}
