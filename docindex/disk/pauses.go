package disk

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// FindHost is [queuesched.Cold.FindHost].
func (c *coldQueues) FindHost(name []byte) (h queuesched.KnownHost, ok bool) {
	if !c.hasPauses || c.db.failed != nil {
		return h, false
	}
	row, err := c.db.get(append([]byte{pauseRow}, name...))
	if err == nil && row != nil {
		h, ok, err = c.readPause(row)
	}
	if err != nil {
		c.db.fail(err)
	}
	return h, ok
}

// keepGap is how long the store keeps a host's gap after the host's pause has ended, ms.
const keepGap = int64(24 * time.Hour / time.Millisecond)

// readPause reads the pause, gap and backoff of a host that the slots and clients have learned. If
// the slots were in use shortly before a restart, they may have requested the host since its pause
// ended, so its gap counts from the restart. A pause from before a restart binds the slots, too.
func (c *coldQueues) readPause(row []byte) (h queuesched.KnownHost, ok bool, err error) {
	r := reader{b: row}
	until, commit := r.int(), int64(0)
	h.Gap = r.int()
	if len(r.b) > 0 { // before version 7 there is no more
		h.Backoff, commit = r.int(), r.int()
	}
	if r.bad {
		return h, false, errRow
	}
	now, gap := c.table.now(), max(h.Gap, h.Backoff)
	switch {
	case until+keepGap <= now:
		return h, false, nil
	case uint64(commit) > c.opened: // while the pause binds, the host is in memory
		return h, gap > 0, nil
	}
	if until <= c.openedAt && c.served > 0 && gap > 0 {
		until = c.served + gap
	}
	if until > now {
		h.Paused, h.Restored = until, until
	}
	return h, until > now || gap > 0, nil
}

// setEndsBack makes all pauses and leases end sooner by ahead, the time in ms by which the clock is known to
// have been set back. The same commit writes a new mark. Otherwise the store would leave each host that was
// requested lately alone for that much longer. The mark is up to slotMarkEvery older than the last pause, so
// pauses may become longer by that. Only pauses from before the clock was ahead become shorter.
func (s *Store) setEndsBack(now, ahead int64) error {
	if ahead == 0 || s.db.space.check() != nil {
		return nil
	}
	b := s.db.NewBatch()
	defer b.Close()
	for _, kind := range []byte{pauseRow, leaseBatchRow} {
		if err := s.db.each(kind, func(key, value []byte) error {
			r := reader{b: value}
			end := r.int()
			if r.bad {
				return errRow
			}
			if end < 0 { // of leases of other daemons
				end = min(end+ahead, -1)
			} else {
				end = max(end-ahead, 0)
			}
			return b.Set(key, append(binary.AppendVarint(nil, end), r.b...), nil)
		}); err != nil {
			return err
		}
	}
	if err := b.Set(metaKey(metaSlots), binary.AppendVarint(nil, now), nil); err != nil {
		return err
	}
	return s.db.Apply(b, pebble.Sync)
}

// EachPause is [docindex.Pauser.EachPause].
func (s *Store) EachPause(ctx context.Context, visit func(host []byte, left time.Duration)) error {
	if err := s.db.helper(); err != nil {
		return err
	}
	defer s.db.helpers.Done()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{pauseRow}, UpperBound: []byte{pauseRow + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	for it.First(); it.Valid() && ctx.Err() == nil; it.Next() {
		row, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		h, _, err := s.queues.cold.readPause(row)
		if err != nil {
			return err
		}
		if left := h.Restored - s.base.Now(); left > 0 {
			visit(it.Key()[1:], time.Duration(left)*time.Millisecond)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return it.Error()
}

// keepPause writes a host's pause row: the end of its pause, the gap that the slots have learned,
// and the backoff that clients' reports ask for, all in ms. commit is the number of the commit that
// writes the row.
func (c *coldQueues) keepPause(host []byte, until, gap, backoff int64, commit uint64) {
	t := c.txn
	t.key = append(append(t.key[:0], pauseRow), trimDot(host)...)
	t.value = t.value[:0]
	for _, v := range []int64{until, gap, backoff, int64(commit)} {
		t.value = binary.AppendVarint(t.value, v)
	}
	t.set()
	c.hasPauses = true
}

const pauseHold = 10_000 // rows that dropSomePauses reads, which takes some ms

// dropPauses deletes the rows of pauses that matter no more, once after Open.
func (s *Store) dropPauses() {
	for from := []byte{pauseRow}; from != nil; {
		from = s.dropSomePauses(from)
	}
}

// dropSomePauses is a step of dropPauses. It returns the key to continue with, or nil.
func (s *Store) dropSomePauses(from []byte) (next []byte) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if s.db.usable() != nil || s.db.space.check() != nil {
		return nil
	}
	next, err := s.queues.cold.dropPauses(from)
	if err != nil {
		s.db.fail(err)
		return nil
	}
	return next
}

func (c *coldQueues) dropPauses(from []byte) (next []byte, err error) {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: []byte{pauseRow + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	b, left, now := c.db.NewBatch(), pauseHold, c.table.now()
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
	return next, c.db.Apply(b, pebble.NoSync)
}
