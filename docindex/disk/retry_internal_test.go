package disk

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"
)

// failingFS creates no tables while it fails, as when the process has too many files open.
type failingFS struct {
	vfs.FS
	fails atomic.Bool
	tries atomic.Int64
}

func (f *failingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category == forFlush && f.fails.Load() {
		f.tries.Add(1)
		return nil, syscall.EMFILE
	}
	return f.FS.Create(name, category)
}

// TestFlushThatFails flushes while no file can be opened. Pebble tries again at once and for ever: the
// store has it wait, and logs one failure in a minute. When files can be opened, the flush succeeds.
func TestFlushThatFails(t *testing.T) {
	space, err := newSpace(t.TempDir(), make(chan struct{}))
	if err != nil {
		t.Fatal(err)
	}
	files := &failingFS{FS: vfs.NewMem()}
	space.FS = files
	var text strings.Builder
	log := &logger{log: zerolog.New(&text), fatal: func(err error) { t.Error(err) }}
	db, err := pebble.Open("db", options(space, 0, log, newCompactions()))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Set([]byte("key"), []byte("value"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	files.fails.Store(true)
	start := time.Now()
	flushed, err := db.AsyncFlush()
	if err != nil {
		t.Fatal(err)
	}
	for files.tries.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	if tries, took := files.tries.Load(), time.Since(start); tries > int64(took/retryAfter)+1 {
		t.Errorf("%d tries to flush in %v; want one in %v", tries, took, retryAfter)
	}
	files.fails.Store(false)
	<-flushed
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "too many open files"); n != 1 {
		t.Errorf("%d failures are logged; want one:\n%s", n, text.String())
	}
}

// TestRetryAfter creates files after a flush failed: those of logs at once, and tables a second later, or
// some milliseconds where the store is closing.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		s := &space{FS: vfs.NewMem(), closing: closing, path: "."}
		wait := func(category vfs.DiskWriteCategory) time.Duration {
			start := time.Now()
			f, err := s.Create(fmt.Sprint(start.UnixNano()), category)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			return time.Since(start)
		}
		s.failed()
		if got := wait("pebble-wal"); got != 0 {
			t.Errorf("a log is created after %v; want at once", got)
		}
		if got := wait(forFlush); got != retryAfter {
			t.Errorf("a table of a flush is created after %v; want %v", got, retryAfter)
		}
		if got := wait(forFlush); got != 0 {
			t.Errorf("the next table is created after %v; want at once", got)
		}
		s.failed()
		close(closing)
		if got := wait(forFlush); got != retryClosing {
			t.Errorf("a table of a store that is closing is created after %v; want %v", got, retryClosing)
		}
	})
}

// TestFatalTellsWhatToDo ends a store's process: a start reads damage again, and all else as it was.
func TestFatalTellsWhatToDo(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{syscall.EIO, "input/output error; start again"},
		{pebble.ErrCorruption, "put back a copy of the folder"},
	} {
		d := &database{cfg: Config{Path: "db", Fatal: func(err error) { panic(err) }}}
		func() {
			defer func() {
				err, _ := recover().(error)
				again := strings.Contains(fmt.Sprint(err), "start again")
				if !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.want) ||
					again == pebble.IsCorruptionError(test.err) {
					t.Errorf("%v: the process ends with %v; want %q", test.err, err, test.want)
				}
			}()
			d.fatal(test.err)
		}()
	}
}
