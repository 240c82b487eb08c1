// Package disk is the docindex.Store that keeps everything in a folder, in a Pebble database. After a
// crash it still has all that it acknowledged: URLs, outcomes, leases of the URL Frontier's clients,
// and settings.
//
// In memory are the documents in transit and, within a budget, the queues that may be served soon,
// each with its counts and the place up to which its documents were handed out, and the numbers of other
// queues. Names of known URLs take what these leave of the budget. All else is on disk, and Open reads
// neither URLs nor queues. A document that the host slots had when the process ended is due again.
package disk

import (
	"errors"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// Sync says when acknowledged writes are on disk.
type Sync uint8

const (
	Batch    Sync = iota // before it is acknowledged; those that wait at the same time share one sync
	Interval             // at most a second later
	None                 // some time later; a crash of the process or the machine may lose the last seconds
)

const syncInterval = time.Second

// DefaultMemory is the memory for queues and names if Config.Memory is 0, in bytes.
const DefaultMemory = 512 << 20

// Config configures a Store.
type Config struct {
	Path string // the folder; Open makes it if there is none
	Sync Sync
	// Memory is how many bytes the queues and the names of known URLs in memory may take, with what the
	// garbage collector takes for them. 0 is DefaultMemory.
	Memory int64
	Log    zerolog.Logger
	// Fatal ends the process. The store calls it when it may have lost writes; only opening it again
	// helps then. If Fatal is nil, the store panics.
	Fatal func(error)
}

// Store is the store. Use Open, then Close. Safe for concurrent use.
//
// The DOC_ID that it gives is the document's name with a mark of the store. It refuses a DOC_ID of
// that form from a client, unless it is the document's own.
type Store struct {
	embedded.Contract
	// its lock guards all below; the store reads the disk under it, and waits for syncs without it
	base     embedded.Base
	db       database
	txn      txn
	queues   queueTable
	docs     documents
	transits transits
	crawls   crawls
	notes
	slotMark int64 // when the row was written that says that the slots are in use, ms
}

// body is a Store as [embedded.Body].
type body Store

func (s *body) UsableLocked() error { return s.db.usable() }

func (s *body) LeaseEndedLocked(id uint32, now int64) {
	(*Store)(s).finishLocked(id, docindex.Scheduled, now)
}

// TotalsLocked returns the bytes on disk.
func (s *body) TotalsLocked() (outcomes [docindex.Kinds]int, bytes int64) {
	if !s.db.closed {
		bytes = int64(s.db.Metrics().DiskSpaceUsage())
	}
	return s.queues.globals.outcomes, bytes
}

var _ docindex.Store = (*Store)(nil)

// Close waits for the calls that are under way and closes the database. Then all stored data is in
// tables on disk and the journal has no changes, so that the next Open is quick.
func (s *Store) Close() error {
	s.base.Mu.Lock()
	if s.db.closed {
		s.base.Mu.Unlock()
		return nil
	}
	s.txn.settle()
	s.db.closed = true
	s.base.Mu.Unlock()
	close(s.db.closing)
	s.db.helpers.Wait()
	var err error
	if s.db.cfg.Sync != Batch {
		err = s.db.LogData(nil, pebble.Sync)
	}
	useless := s.db.flushForClose()
	err = errors.Join(err, s.db.Close())
	s.db.space.removeSpare()
	for _, log := range useless {
		os.Remove(log.path) // or the next Open does
	}
	return err
}
