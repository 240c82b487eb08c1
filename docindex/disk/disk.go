// Package disk is the docindex.Store that keeps everything in a folder, in a Pebble database. What
// it acknowledged is there after a crash: URLs, outcomes, leases of the URL Frontier's clients, and
// settings.
//
// In memory are the queues, with counts and the place up to which each was given out, and what is
// in transit. Bodies are on disk, so opening looks at queues, not at URLs. What the host slots had
// in flight when the process ended is due again.
package disk

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"
)

// Sync says when what was acknowledged is on disk.
type Sync uint8

const (
	Batch    Sync = iota // before it is acknowledged; those that wait at the same time share one sync
	Interval             // at most a second later
	None                 // when the operating system writes it; a crash of the machine may lose some
)

const syncInterval = time.Second

// Config is what a Store is opened with.
type Config struct {
	Path string // the folder; made where there is none
	Sync Sync
	Log  zerolog.Logger
	// Fatal is called when what was written may be lost and only opening again helps: it ends the
	// process. Nil panics.
	Fatal func(error)
}

// Store is the store. Use Open, then Close. Safe for concurrent use.
//
// The DOC_ID it gives is the document's name with a mark of the store. Where a client gives one of
// that form, it is refused, unless it is the document's own.
type Store struct {
	embedded.Contract
	// its lock guards all from failed on; reads of the disk go on under it, waiting for a sync does
	// not
	base embedded.Base

	cfg     Config
	db      *pebble.DB
	space   *space
	merging *compactions
	namer   docNamer
	closing chan struct{}
	helpers sync.WaitGroup // who is at the database, for Close
	synced  atomic.Uint64  // the last commit that is known to be on disk

	failed       error // nothing goes any more
	closed       bool
	queues       []queue           // by the scheduler's numbers
	byNo         map[uint32]uint32 // number in the scheduler, by number on disk
	transits     slab.Slab[transit]
	finder       hashindex.Index // of transits, by name
	leaseBatches map[uint64]int  // transits left of each lease batch's row
	globals      globals
	journal      journal
	txn          txn
	memtables    memtableFilter
	crawls       crawls
	clearing     clearing
	slotMark     int64 // when the row was written that says that slots were given something, ms
}

// body is a Store as [embedded.Body].
type body Store

func (s *body) UsableLocked() error { return (*Store)(s).usableLocked() }

func (s *body) LeaseEndedLocked(id uint32, now int64) {
	(*Store)(s).finishLocked(id, docindex.Scheduled, now)
}

// TotalsLocked returns the bytes on disk.
func (s *body) TotalsLocked() (outcomes [docindex.Kinds]int, bytes int64) {
	if !s.closed {
		bytes = int64(s.db.Metrics().DiskSpaceUsage())
	}
	return s.globals.outcomes, bytes
}

var _ docindex.Store = (*Store)(nil)

// queue is what the doors do not know of one.
type queue struct {
	no         uint32 // on disk
	due        int64  // what the doors were told, ms
	cursor     place  // what stands up to it was given out, but for what is in early
	backfill   window
	hasIDs     bool
	owners     bool   // some of its documents may have owners
	partitions uint32 // the first one of it

	dirty                bool // by the txn, which counts:
	scheduled, completed int32
	served               [2]bool
	dirtySince           uint64 // the first commit that its row does not know of; 0: it knows of all
}

// window is a stretch of places, ends included, in which something may be to be given out; the zero
// value is none.
type window struct {
	from, to place
	open     bool
}

func (w *window) add(p *place) {
	if !w.open {
		*w = window{from: *p, to: *p, open: true}
		return
	}
	if p.before(&w.from) {
		w.from = *p
	}
	if w.to.before(p) {
		w.to = *p
	}
}

// ErrClosed is returned after Close.
var ErrClosed = errors.New("the index on disk is closed")

// usableLocked tells why nothing goes any more.
func (s *Store) usableLocked() error {
	if s.closed {
		return ErrClosed
	}
	return s.failed
}

// failLocked ends all work after an error from below: memory and disk may differ. Opening again
// reads what is on disk.
func (s *Store) failLocked(err error) error {
	if pebble.IsCorruptionError(err) || errors.Is(err, errRow) {
		err = damaged(err)
	}
	if s.failed == nil {
		s.failed = fmt.Errorf("the index in %s cannot go on until it is opened again: %w", s.cfg.Path, err)
		s.cfg.Log.Error().Err(s.failed).Msg("docindex")
	}
	return s.failed
}

// fatal is failLocked for what also means that nothing must be acknowledged any more. It does not
// return.
func (s *Store) fatal(err error) {
	err = fmt.Errorf("the index in %s cannot go on: %w; start again, which reads what is on disk", s.cfg.Path, err)
	if s.cfg.Fatal != nil {
		s.cfg.Fatal(err)
	}
	panic(err)
}

// Close ends the store, once what is under way is done. All that was stored is on disk then, in
// tables, so that the next Open is quick.
func (s *Store) Close() error {
	s.base.Mu.Lock()
	if s.closed {
		s.base.Mu.Unlock()
		return nil
	}
	s.closed = true
	s.base.Mu.Unlock()
	close(s.closing)
	s.helpers.Wait()
	var err error
	if s.cfg.Sync != Batch {
		err = s.db.LogData(nil, pebble.Sync)
	}
	s.flushForClose()
	return errors.Join(err, s.db.Close())
}

const maxFlushForClose = 10 * time.Second

// flushForClose brings into tables what is in logs, so that opening has none to read. Where that
// fails, or takes long, as on a full disk, it is left to the next Open.
func (s *Store) flushForClose() {
	s.merging.end() // the flush would start a compaction, for which the database's Close waits
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return
	}
	select {
	case <-flushed:
	case <-time.After(maxFlushForClose):
	}
}

// helper has Close wait until the caller is done with the database, which it says to helpers.
func (s *Store) helper() error {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.helpers.Add(1)
	return nil
}
