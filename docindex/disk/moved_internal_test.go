package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

// TestFolderMoved: while the folder is somewhere else, nothing is put, also where a new folder or a copy of it is in
// its place. All goes on when it is back.
func TestFolderMoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	put := func() error {
		s.base.Mu.Lock()
		s.db.space.asked = time.Time{} // or the store looks only after a while
		s.base.Mu.Unlock()
		var p docindex.Puts
		if err := p.Add(docindex.Put{URL: fmt.Append(nil, "http://a.test/", n)}); err != nil {
			t.Fatal(err)
		}
		res, err := s.Put(t.Context(), &p)
		n += res.New
		return err
	}
	if err := os.Rename(path, path+"2"); err != nil {
		t.Fatal(err)
	}
	for _, replace := range []func() error{
		func() error { return os.Mkdir(path, 0o700) },
		func() error { return os.CopyFS(path, os.DirFS(path+"2")) },
		func() error { return nil },
	} {
		if err := put(); err == nil || !strings.Contains(err.Error(), "no longer in "+path) {
			t.Errorf("put when the folder was moved: %v; want an error that says so", err)
		}
		if err := replace(); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.RemoveAll(path), os.Rename(path+"2", path), put(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(Config{Path: path}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.base.Sched.Total().URLs; n != 1 || got[0] != 1 {
		t.Errorf("%d documents were put, %d are there; want 1", n, got)
	}
}

// TestLockDeleted: when only the lock file is gone from the folder, the error of a put says so.
func TestLockDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Remove(filepath.Join(path, lockName)); err != nil {
		t.Fatal(err)
	}
	s.base.Mu.Lock()
	s.db.space.asked = time.Time{} // or the store looks only after a while
	s.base.Mu.Unlock()
	var p docindex.Puts
	if err := p.Add(docindex.Put{URL: []byte("http://a.test/")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), &p); err == nil || !strings.Contains(err.Error(), "LOCK was deleted") ||
		strings.Contains(err.Error(), "moved") {
		t.Errorf("put without the lock file: %v; want an error that says that it was deleted", err)
	}
}

// TestFatalIsOneLine: an error that ends the daemon comes without what Pebble knows of its code.
func TestFatalIsOneLine(t *testing.T) {
	var got error
	l := logger{log: zerolog.Nop(), fatal: func(err error) { got = err }}
	l.Fatalf("flush: %s", "no such file\n(1) attached stack trace\n  -- stack trace:\n  | main\nWraps: (2) open")
	if got == nil || got.Error() != "flush: no such file" {
		t.Errorf("fatal with %q; want one line", got)
	}
}
