// Package disk is a docindex.Store that keeps everything in a folder, in a Pebble database. After a
// crash it still has all that it acknowledged: URLs, outcomes, leases of URL Frontier clients, and
// settings.
//
// The store keeps in memory the documents in transit, and within a budget the queues that may be
// served soon, each with its counts and the place up to which the store has handed out its
// documents. It also keeps numbers of queues that are not in memory. The rest of the budget is for
// names of known URLs. Everything else is only on disk, and Open reads neither URLs nor queues.
// After a restart, the documents that the host slots had are due again.
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
	Batch    Sync = iota // before the call returns; calls that wait at the same time share one sync
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
	// Memory is how many bytes the queues and the names of known URLs may take in memory, the
	// garbage collector's overhead included. 0: DefaultMemory.
	Memory int64
	Log    zerolog.Logger
	// Fatal ends the process. The store calls it when it may have lost writes; only opening it again
	// helps then. If Fatal is nil, the store panics.
	Fatal func(error)
}

// Store is a doc index on disk. Open returns one, and the caller must call Close at the end. A
// Store is safe for concurrent use.
//
// If a client gives no DOC_ID, the store makes one of the document's name and the store's mark. It
// refuses a DOC_ID of that form from a client, unless it is the document's own.
type Store struct {
	embedded.Contract
	// base.Mu guards all fields below. The store holds it while it reads the disk, not while it
	// waits for syncs.
	base     embedded.Base
	db       database
	txn      txn
	queues   queueTable
	docs     documents
	transits transits
	crawls   crawls
	notes
	slotMark int64 // when markSlotsLocked wrote its row last, ms; 0: not since Open
}

// body makes a Store an [embedded.Body].
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
