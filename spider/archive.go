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

// maxWARC is the size from which on a WARC file is not appended to, as WARC 1.1 (annex C)
// recommends.
const maxWARC = 1 << 30

// archive writes WARC files, one at a time. A file that is being written ends in ".open"; so does
// one that a crash left behind, which is whole up to its last record. What write has returned for
// survives a crash of the spider, not one of the machine: files are synced when they are closed.
// Only their owner may read them: they tell what somebody is interested in.
type archive struct {
	dir, software string
	max           int64
	now           func() time.Time

	turn   chan struct{} // holds one while somebody writes; guards all below
	file   *os.File      // nil: none is open
	path   string        // of file, when it is closed
	size   int64         // of whole records in file
	serial int
}

func newArchive(dir, software string) *archive {
	return &archive{dir: dir, software: software, max: maxWARC, now: time.Now, turn: make(chan struct{}, 1)}
}

// write appends records, whole gzip members. After an error none of them is in the file and the
// next write goes to where they would have been.
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

// open begins a file, with a warcinfo record.
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

// discard removes a file that could not be begun.
func (w *archive) discard() error {
	file := w.file
	w.file = nil
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// finish cuts off what a failed write may have left, and gives the file its name. After an error it
// may be called again.
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

// close finishes the file, if there is one.
func (w *archive) close() error {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	if w.file == nil {
		return nil
	}
	return w.finish()
}
