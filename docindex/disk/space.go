package disk

import (
	"fmt"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"urlserver/docindex"
)

// Pebble ends the process when a log cannot be written, so it has to have room for what it does by
// itself: logs that wait for their flush, and tables that compactions make. New writes are refused
// below the reserve; below half of it, compactions wait.
const (
	reserve    = 128 << 20
	askAfter   = 50 * time.Millisecond // since the file system was asked last
	askWritten = 4 << 20               // or so many bytes since then
)

// space watches the room that is left on the disk. It is the file system of the database, too.
type space struct {
	vfs.FS
	path    string
	closing <-chan struct{}

	asked   time.Time // these under the store's lock
	written int       // since then, bytes
	full    error
}

// check tells whether there is room for writes. The store's lock is held.
func (s *space) check() error {
	if time.Since(s.asked) < askAfter && s.written < askWritten && !s.asked.IsZero() {
		return s.full
	}
	s.asked, s.written, s.full = time.Now(), 0, nil
	if free, err := s.free(); err != nil {
		s.full = fmt.Errorf("the disk of %s does not tell what is free: %w", s.path, err)
	} else if free < reserve {
		s.full = fmt.Errorf("the disk of %s is %w: %d MiB are free and %d MiB have to stay so; make room and nothing else is needed",
			s.path, docindex.ErrFull, free>>20, reserve>>20)
	}
	return s.full
}

// wrote counts what was written. The store's lock is held.
func (s *space) wrote(bytes int) { s.written += bytes }

func (s *space) free() (uint64, error) {
	usage, err := s.FS.GetDiskUsage(s.path)
	return usage.AvailBytes, err
}

// forCompaction is what Pebble says its compactions' files are.
const forCompaction vfs.DiskWriteCategory = "pebble-compaction"

// Create is [vfs.FS.Create]; that of compactions waits for room.
func (s *space) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	for category == forCompaction {
		if free, err := s.free(); err != nil || free >= reserve/2 {
			break
		}
		select {
		case <-s.closing:
			return nil, syscall.ENOSPC
		case <-time.After(time.Second):
		}
	}
	return s.FS.Create(name, category)
}

// Unwrap is for Pebble, which looks for the file system below.
func (s *space) Unwrap() vfs.FS { return s.FS }
