package disk

import (
	"errors"
	"fmt"
	"io/fs"
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

// failingFS creates and opens no tables while it fails, as when the process has too many files open.
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

func (f *failingFS) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") && f.fails.Load() {
		f.tries.Add(1)
		return nil, syscall.EMFILE
	}
	return f.FS.Open(name, options...)
}

// failing is a database on files that may fail.
type failing struct {
	*pebble.DB
	files       *failingFS
	compactions *compactions
	log         strings.Builder
}

func newFailing(t *testing.T) *failing {
	t.Helper()
	space, err := newSpace(t.TempDir(), make(chan struct{}))
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{files: &failingFS{FS: vfs.NewMem()}, compactions: newCompactions()}
	space.FS = f.files
	log := &logger{log: zerolog.New(&f.log), fatal: func(err error) { t.Error(err) }}
	if f.DB, err = pebble.Open("db", options(space, 0, log, f.compactions)); err != nil {
		t.Fatal(err)
	}
	return f
}

// set sets a key to a number.
func (f *failing) set(t *testing.T, n int) {
	t.Helper()
	if err := f.DB.Set([]byte("key"), fmt.Append(nil, n), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
}

// check waits for two tries since start, and checks that they are not more often than one in retryAfter.
func (f *failing) check(t *testing.T, start time.Time) {
	t.Helper()
	for f.files.tries.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	if tries, took := f.files.tries.Load(), time.Since(start); tries > int64(took/retryAfter)+1 {
		t.Errorf("%d tries in %v; want one in %v", tries, took, retryAfter)
	}
}

// close closes the database, and checks that one failure is logged.
func (f *failing) close(t *testing.T) {
	t.Helper()
	if err := f.DB.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(f.log.String(), "too many open files"); n != 1 {
		t.Errorf("%d failures are logged; want one:\n%s", n, f.log.String())
	}
}

// TestFlushThatFails flushes while no file can be opened. Pebble tries again at once and for ever: the
// store has it wait, and logs one failure in a minute. When files can be opened, the flush succeeds.
func TestFlushThatFails(t *testing.T) {
	db := newFailing(t)
	db.set(t, 1)
	db.files.fails.Store(true)
	start := time.Now()
	flushed, err := db.AsyncFlush()
	if err != nil {
		t.Fatal(err)
	}
	db.check(t, start)
	db.files.fails.Store(false)
	<-flushed
	db.close(t)
}

// TestCompactionThatFails compacts while the tables that it reads cannot be opened, as TestFlushThatFails.
func TestCompactionThatFails(t *testing.T) {
	db := newFailing(t)
	for i := range compactAt { // tables on top of each other
		db.set(t, i)
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	db.files.fails.Store(true)
	start := time.Now()
	db.compactions.begin()
	db.check(t, start)
	db.files.fails.Store(false)
	for db.Metrics().Compact.Count == 0 {
		time.Sleep(time.Millisecond)
	}
	db.close(t)
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

// TestOpenTellsWhatToDo opens an index on a machine where it cannot be read or written. Nobody need put back a
// copy or begin with an empty index.
func TestOpenTellsWhatToDo(t *testing.T) {
	for _, cause := range append(ofMachine, syscall.EACCES, syscall.EPERM) {
		want := "start again"
		if errors.Is(cause, fs.ErrPermission) {
			want = "as the user who owns"
		}
		path := t.TempDir()
		space, err := newSpace(path, make(chan struct{}))
		if err != nil {
			t.Fatal(err)
		}
		space.FS = brokenFS{vfs.Default, cause}
		_, err = openDB(path, options(space, 0, &logger{log: zerolog.Nop()}, newCompactions()))
		if !errors.Is(err, cause) || strings.Contains(err.Error(), "copy") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("opened where %v: %v; want to be told %q", cause, err, want)
		}
	}
}

// brokenFS creates no files.
type brokenFS struct {
	vfs.FS
	cause error
}

func (f brokenFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, f.cause }
