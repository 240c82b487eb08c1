// Package disk is the docindex.Store that keeps everything in a folder, in a Pebble database. What
// it acknowledged is there after a crash: URLs, outcomes, leases of the URL Frontier's clients, and
// settings.
//
// In memory are the documents in transit and, within a budget, the queues that may be served soon,
// each with its counts and the place up to which its documents were handed out. All else is on disk,
// and Open reads neither URLs nor queues. A document that the host slots had when the process ended
// is due again.
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
	"urlserver/docindex/internal/queuesched"
)

// Sync says when what was acknowledged is on disk.
type Sync uint8

const (
	Batch    Sync = iota // before it is acknowledged; those that wait at the same time share one sync
	Interval             // at most a second later
	None                 // some time later; a crash of the process or the machine may lose the last seconds
)

const syncInterval = time.Second

// DefaultMemory is the memory for queues if nothing is said of it, in bytes.
const DefaultMemory = 512 << 20

// Config is what a Store is opened with.
type Config struct {
	Path string // the folder; Open makes it if there is none
	Sync Sync
	// Memory is how many bytes the queues in memory may take, with what the garbage collector takes
	// for them. 0 is DefaultMemory.
	Memory int64
	Log    zerolog.Logger
	// Fatal ends the process. The store calls it when it may have lost what it wrote; only opening
	// it again helps then. If Fatal is nil, the store panics.
	Fatal func(error)
}

// Store is the store. Use Open, then Close. Safe for concurrent use.
//
// The DOC_ID that it gives is the document's name with a mark of the store. It refuses a DOC_ID of
// that form from a client, unless it is the document's own.
type Store struct {
	embedded.Contract
	// its lock guards all fields from failed on; the store reads the disk under it, and waits for
	// syncs without it
	base embedded.Base

	cfg     Config
	db      *pebble.DB
	space   *space
	merging *compactions
	namer   docNamer
	closing chan struct{}
	helpers sync.WaitGroup // goroutines that use the database; Close waits for them
	synced  atomic.Uint64  // the last commit that is known to be on disk

	failed    error // the error after which the store refuses all calls
	closed    bool
	queues    queues
	cold      coldQueues
	transits  transits
	globals   globals
	journal   journal
	txn       txn
	memtables memtableFilter
	known     knownNames
	crawls    crawls
	clearing  clearing
	notes     notes
	slotMark  int64 // when the row was written that says that the slots are in use, ms
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

// queue is the part of a queue's state that the scheduler does not have.
type queue struct {
	no         uint32 // on disk
	due        int64  // as the scheduler knows it, ms
	cursor     place  // documents up to it were handed out, except those in backfill
	backfill   window
	wake       queuesched.Moment // of its wake row; NoMoment: it has none
	wakes      uint32            // scheduled documents by its wake row
	hasIDs     bool
	set        bool   // it has a setRow
	touched    bool   // its row is not as it would be written if it was evicted now
	owners     bool   // some of its documents may have owners
	partitions uint32 // the first one of it

	rewrite              bool // the txn writes its row
	dirty                bool // the txn has changed it; the next two fields are the changes of its counts
	scheduled, completed int32
	served               [2]bool
	dirtySince           uint64 // the first commit that its row does not contain; 0: it contains all
}

// window is a range of places, ends included, that may have documents to hand out. The zero value
// is empty.
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

// usableLocked returns the error after which the store refuses all calls, or nil.
func (s *Store) usableLocked() error {
	if s.closed {
		return ErrClosed
	}
	return s.failed
}

// failLocked makes the store refuse all calls after an error of the database: memory and disk may
// differ. Opening it again reads what is on disk.
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

// fatal ends the process: commits that the store has not acknowledged yet may be lost, so it must
// not acknowledge anything. It does not return.
func (s *Store) fatal(err error) {
	err = fmt.Errorf("the index in %s cannot go on: %w; start again, which reads what is on disk", s.cfg.Path, err)
	if s.cfg.Fatal != nil {
		s.cfg.Fatal(err)
	}
	panic(err)
}

// Close waits for the calls that are under way and closes the database. Then all stored data is in
// tables on disk and the journal has no changes, so that the next Open is quick.
func (s *Store) Close() error {
	s.base.Mu.Lock()
	if s.closed {
		s.base.Mu.Unlock()
		return nil
	}
	s.settleLocked()
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

// flushForClose writes the memtables into tables, so that the next Open has no logs to read. If
// that fails or takes long, as on a full disk, the next Open reads the logs.
func (s *Store) flushForClose() {
	s.merging.end() // or else the flush starts a compaction, and the database's Close waits for it
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return
	}
	select {
	case <-flushed:
	case <-time.After(maxFlushForClose):
	}
}

// helper registers the caller as a user of the database, so that Close waits until the caller calls
// helpers.Done.
func (s *Store) helper() error {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.helpers.Add(1)
	return nil
}
