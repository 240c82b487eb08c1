package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/rs/zerolog"
)

// Sizes in bytes. Pebble's memory does not grow with the number of URLs. Pebble takes the
// memtables' memory out of the cache, which may be all of cacheSize. So options adds a part of the
// memory for queues, for blocks and filters.
const (
	cacheSize = 24 << 20
	blockSize = 8 << 10 // of a table's block; a new URL takes more of the disk with 4 KiB, and with 16 KiB
	tableSize = 8 << 20 // of a memtable and of a table, at most, so that a table's filter fits the cache
	compactAt = 24      // tables of the upper level; a compaction begins when half as many lie on top of each other
)

// options returns the options of a store with memory for queues. The names of queues come in the order
// of a hash (see tableEnds), so a compaction of their tables writes all of them in the next level anew.
// That level is small, and many such tables go into it at a time.
func options(space *space, memory int64, log *logger, compactions *compactions) *pebble.Options {
	o := &pebble.Options{
		FS:                          space,
		Logger:                      log,
		FormatMajorVersion:          pebble.FormatColumnarBlocks,
		CacheSize:                   cacheSize + memory/16,
		MemTableSize:                uint64(space.table),
		MemTableStopWritesThreshold: 3,
		L0CompactionThreshold:       compactAt,
		L0StopWritesThreshold:       40,
		LBaseMaxBytes:               32 << 20,
		MaxOpenFiles:                1000,
		EventListener: &pebble.EventListener{BackgroundError: func(err error) {
			space.failed()
			log.background(err)
		}},
	}
	compactions.space = space
	o.Experimental.CompactionScheduler = compactions
	o.Experimental.SpanPolicyFunc = endOfTable
	// A queue's cursor is behind its deleted rows, so no iterator passes over them again. Neither
	// these tombstones alone nor reads are a reason to compact.
	o.Experimental.TombstoneDenseCompactionThreshold = -1
	o.Experimental.ReadSamplingMultiplier = -1
	filter := rowFilter{bloom.FilterPolicy(10)}
	o.Filters = map[string]pebble.FilterPolicy{filter.FilterPolicy.Name(): filter} // of older tables
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = filter
		o.Levels[i].BlockSize = blockSize
		o.TargetFileSizes[i] = int64(space.table)
	}
	return o
}

// tableEnds are keys at which each flush and compaction ends a table. New queues write most of their
// rows in the order of their numbers. So the tables that two flushes make of these have no key range in
// common, and a compaction need not merge them. Only the names of queues, the docRows with 0 as queue
// number, are in the order of a hash.
var tableEnds = [][]byte{{planRow}, {docRow}, numberKey(docRow, 1), {freshRow}, {wakeRow}}

// endOfTable is a [pebble.SpanPolicyFunc] that says nothing but where a table that begins with a key ends.
func endOfTable(start []byte) (_ pebble.SpanPolicy, end []byte, _ error) {
	for _, end := range tableEnds {
		if bytes.Compare(start, end) < 0 {
			return pebble.SpanPolicy{}, end, nil
		}
	}
	return pebble.SpanPolicy{}, nil, nil
}

// rowFilter is a table's filter that leaves out the bodies of scheduled documents and the rows of
// fresh queues: the store hardly ever looks for one that does not exist. The filters of older
// tables may contain both. They have the name of the filter of all rows.
type rowFilter struct{ bloom.FilterPolicy }

// Name is not the name of the filter of all rows: with that, an older program would not find the
// rows that the filter leaves out. An older program ignores a filter whose name it does not know.
func (f rowFilter) Name() string { return "urlserver.named" }

func inFilter(key []byte) bool { return key[0] != planRow && key[0] != freshRow }

func (f rowFilter) MayContain(kind pebble.FilterType, filter, key []byte) bool {
	return !inFilter(key) || f.FilterPolicy.MayContain(kind, filter, key)
}

func (f rowFilter) NewWriter(kind pebble.FilterType) pebble.FilterWriter {
	return rowFilterWriter{f.FilterPolicy.NewWriter(kind)}
}

type rowFilterWriter struct{ pebble.FilterWriter }

func (w rowFilterWriter) AddKey(key []byte) {
	if inFilter(key) {
		w.FilterWriter.AddKey(key)
	}
}

// logger receives Pebble's messages and errors.
type logger struct {
	log   zerolog.Logger
	fatal func(error)
	quiet atomic.Int64 // ns since 1970: until when failures in the background are not logged
}

const logAfter = time.Minute // the least time between two logged failures in the background

// Infof drops the message: these are of use only to developers of Pebble.
func (l *logger) Infof(string, ...any) {}

// Errorf logs the message as a warning.
func (l *logger) Errorf(format string, args ...any) {
	l.log.Warn().Msg("docindex on disk: " + fmt.Sprintf(format, args...))
}

// Fatalf calls fatal, which does not return. Pebble's code after the call relies on that. Fatalf leaves out where
// in the code an error arose, which Pebble appends in lines with numbers.
func (l *logger) Fatalf(format string, args ...any) {
	text, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n(1) ")
	l.fatal(errors.New(text))
}

// background logs the failure of a flush or compaction, at most one in logAfter. Pebble tries it again.
func (l *logger) background(err error) {
	now, quiet := time.Now(), l.quiet.Load()
	left := time.Unix(0, quiet).Sub(now) // longer than logAfter if the clock went back
	if left > 0 && left <= logAfter || !l.quiet.CompareAndSwap(quiet, now.Add(logAfter).UnixNano()) {
		return
	}
	l.log.Warn().Err(err).Msg("docindex on disk: work in the background failed and is tried again")
}

// ofMachine are errors of the machine, not of the index.
var ofMachine = []error{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE}

// openDB opens the database. Its errors say what the operator can do.
func openDB(path string, o *pebble.Options) (*pebble.DB, error) {
	if err := checkMarker(path); err != nil {
		return nil, causeOfMachine(path, err)
	}
	if err := checkNewestLog(path); err != nil {
		return nil, causeOfMachine(path, err)
	}
	db, err := pebble.Open(path, o)
	if err == nil {
		return db, nil
	}
	switch told := causeOfMachine(path, err); {
	case told != err:
		return nil, told
	case errors.Is(err, syscall.EAGAIN), strings.Contains(err.Error(), "lock held by"):
		return nil, fmt.Errorf("%s is in use by another process: %w; stop that one, or choose another folder", path,
			err)
	case pebble.IsCorruptionError(err):
		return nil, fmt.Errorf(
			"%s is damaged: %w; put back a copy of it, or move it away to begin with an empty index", path, err)
	}
	return nil, fmt.Errorf("%s cannot be opened as an index: %w; choose another folder, put back a "+
		"copy, or move it away to begin with an empty index",
		path, err)
}

// causeOfMachine adds to err what the operator can do, if the machine and not the content of the files is the cause.
func causeOfMachine(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s cannot be opened: %w; start the daemon as the user who owns the folder and all files in "+
			"it, or give them to its user", path, err)
	case slices.ContainsFunc(ofMachine, func(cause error) bool { return errors.Is(err, cause) }):
		return fmt.Errorf("%s cannot be opened: %w; mend that and start again", path, err)
	}
	return err
}
