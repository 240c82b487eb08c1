package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"urlserver/docindex"
)

// Pebble ends the process when it cannot write a log. So the store reserves room for what Pebble
// writes by itself: logs whose memtables are not flushed, and the tables that compactions make. The
// store refuses writes while less than the reserve is free. Compactions wait while less than half
// of it is free. On a disk of less than 512 MiB memtables and tables are smaller, and so is the
// reserve: a quarter of the disk.
const (
	reserveTables = 16                    // the reserve, in tables
	leastTable    = 256 << 10             // bytes
	askAfter      = 50 * time.Millisecond // ask the file system again after this time
	retryAfter    = time.Second           // how long to wait after a flush or a compaction failed
	retryClosing  = 10 * time.Millisecond // the same while the store is being closed
)

// space checks how much of the disk is free. It is also the file system that Pebble uses.
type space struct {
	vfs.FS
	path    string
	closing <-chan struct{}
	table   int // bytes of a memtable, and of a table

	asked   time.Time   // when check last asked the file system; this and the next are under the store's lock
	written int         // bytes written since then
	full    error       // the result of the last check
	folder  os.FileInfo // of path at the first check; this and the next are under the store's lock
	lock    os.FileInfo // of lockName in it

	retryAt atomic.Int64 // ns since 1970: when the next flush or compaction may begin
	spare   vfs.File     // for the next manifest; nil: there is none
}

// newSpace returns the space of the disk on which the folder path is.
func newSpace(path string, closing <-chan struct{}) (*space, error) {
	s := &space{FS: vfs.Default, path: path, closing: closing}
	usage, err := s.FS.GetDiskUsage(path)
	if err != nil {
		return nil, fmt.Errorf("the disk of %s does not tell its size: %w", path, err)
	}
	s.table = int(max(leastTable, min(tableSize, usage.TotalBytes/(4*reserveTables))))
	return s, nil
}

// reserve is how many bytes have to stay free.
func (s *space) reserve() uint64 { return reserveTables * uint64(s.table) }

// lockName is the name of Pebble's lock file. It is in the index's folder, and stays the same file
// while the index is open.
const lockName = "LOCK"

// atPath returns an error if the folder is no longer where it was at the first call, or its lock file is gone.
func (s *space) atPath() error {
	folder, err := os.Stat(s.path)
	if err != nil {
		return s.moved(err)
	}
	lock, err := os.Stat(filepath.Join(s.path, lockName))
	switch {
	case err != nil && s.folder != nil && os.SameFile(s.folder, folder):
		return fmt.Errorf("the file %s was deleted from the index in %s, so another process could open it, too: "+
			"%w; start again", lockName, s.path, err)
	case err != nil:
		return s.moved(err)
	case s.lock == nil:
		s.folder, s.lock = folder, lock
	case !os.SameFile(s.lock, lock): // that of a copy, say
		return s.moved(errors.New("another index is there"))
	}
	return nil
}

func (s *space) moved(why error) error {
	return fmt.Errorf("the index is no longer in %s, as when its folder was moved or a disk mounted over it: "+
		"%w; put the folder back, or start again", s.path, why)
}

// check returns an error if there is no room for writes, or if the folder is no longer where it
// was: the next Open would not find the writes. The caller holds the store's lock.
func (s *space) check() error {
	if time.Since(s.asked) < askAfter && s.written < s.table/2 && !s.asked.IsZero() {
		return s.full
	}
	s.asked, s.written, s.full = time.Now(), 0, nil
	if err := s.atPath(); err != nil {
		s.full = err
	} else if free, err := s.free(); err != nil {
		s.full = fmt.Errorf("the disk of %s does not tell what is free: %w", s.path, err)
	} else if free < s.reserve() {
		s.full = fmt.Errorf(
			"the disk of %s is %w: %d MiB are free and %d MiB have to stay so; make room and nothing else is needed",
			s.path, docindex.ErrFull, free>>20, s.reserve()>>20)
	}
	return s.full
}

// wrote counts written bytes. The caller holds the store's lock.
func (s *space) wrote(bytes int) { s.written += bytes }

func (s *space) free() (uint64, error) {
	usage, err := s.FS.GetDiskUsage(s.path)
	return usage.AvailBytes, err
}

// The categories that Pebble gives to files of flushes and compactions, and to its manifest.
const (
	forFlush      vfs.DiskWriteCategory = "pebble-memtable-flush"
	forCompaction vfs.DiskWriteCategory = "pebble-compaction"
	forManifest   vfs.DiskWriteCategory = "pebble-manifest"
)

// failed notes that a flush or a compaction failed.
func (s *space) failed() { s.retryAt.Store(time.Now().Add(retryAfter).UnixNano()) }

// waitAfterFailure returns when retryAfter has passed since the last failure.
func (s *space) waitAfterFailure() {
	wait := time.Until(time.Unix(0, s.retryAt.Load())) // longer than retryAfter if the clock went back
	if wait <= 0 || wait > retryAfter {
		return
	}
	select {
	case <-s.closing:
		time.Sleep(min(wait, retryClosing))
	case <-time.After(wait):
	}
}

// Create is [vfs.FS.Create]. Pebble repeats a flush that failed at once and for ever, so Create waits
// after a failure (compactions wait in grant.Done). For a compaction it waits until half of the reserve is
// free, and returns ENOSPC if the store is closed meanwhile.
func (s *space) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category == forFlush {
		s.waitAfterFailure()
	}
	for category == forCompaction {
		if free, err := s.free(); err != nil || free >= s.reserve()/2 {
			break
		}
		select {
		case <-s.closing:
			return nil, syscall.ENOSPC
		case <-time.After(time.Second):
		}
	}
	if category == forManifest {
		return s.createManifest(name)
	}
	f, err := s.FS.Create(name, category)
	if err == nil && (category == forFlush || category == forCompaction) {
		return &tableWriter{File: f}, nil
	}
	return f, err
}

// ReuseForWrite is [vfs.FS.ReuseForWrite]. The log that the store begins as it is closed is a new
// file, which takes no room.
func (s *space) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	select {
	case <-s.closing:
		if err := s.FS.Remove(old); err != nil {
			return nil, err
		}
		return s.FS.Create(name, category)
	default:
		return s.FS.ReuseForWrite(old, name, category)
	}
}

// Unwrap is [vfs.FS.Unwrap].
func (s *space) Unwrap() vfs.FS { return s.FS }
