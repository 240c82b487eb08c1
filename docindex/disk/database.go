package disk

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// database is a store's Pebble database. It records whether the store can use it, which commits are
// on disk, and which documents' rows its memtables may have.
type database struct {
	*pebble.DB
	cfg       Config
	space     *space
	merging   *compactions
	closing   chan struct{}
	helpers   sync.WaitGroup // goroutines that use the database; Close waits for them
	synced    atomic.Uint64  // the last commit that is known to be on disk
	mu        *sync.Mutex    // the store's lock; it guards the next fields
	failed    error          // the error after which the store refuses all calls
	closed    bool
	memtables memtableFilter
}

// usable returns the error after which the store refuses all calls, or nil.
func (d *database) usable() error {
	if d.closed {
		return ErrClosed
	}
	return d.failed
}

// fail makes the store refuse all calls after an error of the database, because memory and disk may
// differ. The next Open reads the state on disk.
func (d *database) fail(err error) error {
	if pebble.IsCorruptionError(err) || errors.Is(err, errRow) {
		err = damaged(err)
	}
	if d.failed == nil {
		d.failed = fmt.Errorf("the index in %s cannot go on until it is opened again: %w", d.cfg.Path, err)
		d.cfg.Log.Error().Err(d.failed).Msg("docindex")
	}
	return d.failed
}

// fatal ends the process: commits that the store has not acknowledged yet may be lost, so it must
// not acknowledge anything. It does not return.
func (d *database) fatal(err error) {
	if pebble.IsCorruptionError(err) {
		err = damaged(err)
	} else {
		err = fmt.Errorf("%w; start again, which reads what is on disk", err)
	}
	err = fmt.Errorf("the index in %s cannot go on: %w", d.cfg.Path, err)
	if d.cfg.Fatal != nil {
		d.cfg.Fatal(err)
	}
	panic(err)
}

// flushForClose writes the memtables into tables, so that the next Open has no logs to read. If
// that fails or takes long, as on a full disk, the next Open reads the logs. flushForClose returns
// the logs that nobody needs any more. Pebble keeps a few such files to write new logs over them.
func (d *database) flushForClose() (useless []walFile) {
	d.merging.end() // or else the flush starts a compaction, and the database's Close waits for it
	flushed, err := d.flushAll()
	if err != nil {
		return nil
	}
	select {
	case <-flushed:
	case <-time.After(maxFlushForClose):
		return nil
	}
	logs, err := logsIn(d.cfg.Path)
	if err != nil || len(logs) == 0 {
		return nil
	}
	return logs[:len(logs)-1] // nobody writes any more, so the newest one stays the newest
}

// helper registers the caller as a user of the database, so that Close waits until the caller calls
// helpers.Done.
func (d *database) helper() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.helpers.Add(1)
	return nil
}

const maxFlushForClose = 10 * time.Second

// get reads a row. It returns nil if there is none.
func (d *database) get(key []byte) ([]byte, error) {
	value, closer, err := d.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	own := append([]byte{}, value...)
	return own, closer.Close()
}

// each calls do with each row of a kind, in key order. do must not keep the slices.
func (d *database) each(kind byte, do func(key, value []byte) error) error {
	it, err := d.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := do(it.Key(), value); err != nil {
			return fmt.Errorf("row %.40q: %w", it.Key(), err)
		}
	}
	return it.Error()
}

// write applies a batch to the database, and starts a flush if the memtables are nearly full. If
// sync is true, it returns the batch, which Pebble is still syncing.
func (d *database) write(b *pebble.Batch, sync bool) (*pebble.Batch, error) {
	bytes, rows := b.Len(), int(b.Count())
	d.space.wrote(bytes)
	b, err := d.apply(b, sync)
	if err == nil && d.memtables.count(bytes, rows) {
		err = d.flush()
	}
	if err != nil {
		return nil, d.fail(err)
	}
	return b, nil
}

func (d *database) apply(b *pebble.Batch, sync bool) (*pebble.Batch, error) {
	if sync {
		return b, d.ApplyNoSyncWait(b, pebble.Sync)
	}
	if err := d.Apply(b, pebble.NoSync); err != nil {
		return nil, err
	}
	return nil, b.Close()
}

// flush starts a flush of the memtables into tables.
func (d *database) flush() error {
	flushed, err := d.flushAll()
	if err == nil {
		d.memtables.next(flushed)
	}
	return err
}

// flushAll starts a flush, and returns a channel that is closed at its end. Before each flush it
// writes the same row, so that all tables that begin with rows of the journal overlap in that key.
// Without the row, each such table would overlap only with the next one. Pebble would compact none
// of them until there are 500, and a read looks into all of them.
func (d *database) flushAll() (flushed <-chan struct{}, err error) {
	if err := d.Set(metaKey(metaFlushed), nil, pebble.NoSync); err != nil {
		return nil, err
	}
	return d.AsyncFlush()
}

// waitSync waits until the commit with a number is on disk.
func (d *database) waitSync(b *pebble.Batch, number uint64) error {
	if d.cfg.Sync != Batch {
		return nil
	}
	var err error
	switch {
	case b != nil:
		err = b.SyncWait()
		b.Close()
	case d.synced.Load() >= number:
		return nil
	default: // another call's commit, whose sync may be under way
		if err = d.helper(); err != nil {
			return err
		}
		err = d.LogData(nil, pebble.Sync)
		d.helpers.Done()
	}
	if err != nil {
		d.fatal(err)
	}
	for {
		old := d.synced.Load()
		if old >= number || d.synced.CompareAndSwap(old, number) {
			return nil
		}
	}
}

// ErrClosed is returned after Close.
var ErrClosed = errors.New("the index on disk is closed")
