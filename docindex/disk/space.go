package disk

import (
	"fmt"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"urlserver/docindex"
)

// Pebble ends the process when it cannot write a log. So the store reserves room for what Pebble
// writes by itself: logs whose memtables are not flushed, and the tables that compactions make. The
// store refuses writes while less than the reserve is free. Compactions wait while less than half
// of it is free.
const (
	reserve    = 128 << 20
	askAfter   = 50 * time.Millisecond // ask the file system again after this time
	askWritten = 4 << 20               // or after so many bytes were written
)

// space checks how much of the disk is free. It is also the file system that Pebble uses.
type space struct {
	vfs.FS
	path    string
	closing <-chan struct{}

	asked   time.Time // when the file system was asked last; this and the next are under the store's lock
	written int       // bytes written since then
	full    error     // the result of the last check
}

// check returns an error if there is no room for writes. The caller holds the store's lock.
func (s *space) check() error {
	if time.Since(s.asked) < askAfter && s.written < askWritten && !s.asked.IsZero() {
		return s.full
	}
	s.asked, s.written, s.full = time.Now(), 0, nil
	if free, err := s.free(); err != nil {
		s.full = fmt.Errorf("the disk of %s does not tell what is free: %w", s.path, err)
	} else if free < reserve {
		s.full = fmt.Errorf(
			"the disk of %s is %w: %d MiB are free and %d MiB have to stay so; make room and nothing else is needed",
			s.path, docindex.ErrFull, free>>20, reserve>>20)
	}
	return s.full
}

// wrote counts written bytes. The caller holds the store's lock.
func (s *space) wrote(bytes int) { s.written += bytes }

func (s *space) free() (uint64, error) {
	usage, err := s.FS.GetDiskUsage(s.path)
	return usage.AvailBytes, err
}

// forCompaction is the category that Pebble gives to files of compactions.
const forCompaction vfs.DiskWriteCategory = "pebble-compaction"

// Create is [vfs.FS.Create]. For a compaction it waits until half of the reserve is free, and
// returns ENOSPC if the store is closed meanwhile.
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

// Unwrap is [vfs.FS.Unwrap].
func (s *space) Unwrap() vfs.FS { return s.FS }
