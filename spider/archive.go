package spider

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxWARC is the size at which a new WARC file is started, as WARC 1.1 (annex C) recommends.
const maxWARC = 1 << 30

// archive writes WARC files, one at a time. The name of a file being written ends in ".open". A
// crash may leave such a file; it is complete up to its last record. When write has returned, its
// records survive a crash of the spider, but not of the machine: files are synced when they are
// closed. Only their owner may read them, because they show what somebody crawls.
type archive struct {
	dir, software string
	max           int64
	now           func() time.Time

	turn   chan struct{} // a semaphore of one; guards all below
	file   *os.File      // nil: none is open
	path   string        // the name of file when it is closed
	size   int64         // bytes of complete records in file
	serial int
}

func newArchive(dir, software string) *archive {
	return &archive{dir: dir, software: software, max: maxWARC, now: time.Now, turn: make(chan struct{}, 1)}
}

// write appends records, each a complete gzip member. After an error the file contains none of
// them, and the next write starts at the same place.
func (w *archive) write(ctx context.Context, records []byte) error {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if w.file != nil && w.size+int64(len(records)) > w.max {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.file == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	return w.append(records)
}

func (w *archive) append(records []byte) error {
	if _, err := w.file.WriteAt(records, w.size); err != nil {
		return fmt.Errorf("write WARC: %w", err)
	}
	w.size += int64(len(records))
	return nil
}

// open creates a file and writes a warcinfo record.
func (w *archive) open() error {
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return fmt.Errorf("WARC directory: %w", err)
	}
	now := w.now().UTC()
	name := fmt.Sprintf("spider-%s-%05d-%s.warc.gz", now.Format("20060102T150405Z"), w.serial,
		strings.ToLower(rand.Text()[:8]))
	path := filepath.Join(w.dir, name)
	file, err := os.OpenFile(path+".open", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("open WARC: %w", err)
	}
	w.file, w.path, w.size = file, path, 0
	w.serial++
	if err := w.append(warcInfo(name, w.software, now)); err != nil {
		return errors.Join(err, w.discard())
	}
	return nil
}

// discard removes a file whose first record could not be written.
func (w *archive) discard() error {
	file := w.file
	w.file = nil
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// finish truncates what a failed write may have left, and renames the file. After an error it may
// be called again.
func (w *archive) finish() error {
	if err := errors.Join(w.file.Truncate(w.size), w.file.Sync()); err != nil {
		return fmt.Errorf("finish WARC: %w", err)
	}
	file := w.file
	w.file = nil
	if err := errors.Join(file.Close(), os.Rename(file.Name(), w.path)); err != nil {
		return fmt.Errorf("finish WARC: %w", err)
	}
	return nil
}

// close finishes the present file, if there is one.
func (w *archive) close() error {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	if w.file == nil {
		return nil
	}
	return w.finish()
}
