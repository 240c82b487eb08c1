package disk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/disk"
)

// crashed returns the folder of a store that was killed after so many puts of one URL each, and the
// name of its newest log.
func crashed(t *testing.T, puts int) (path, log string) {
	t.Helper()
	dir := t.TempDir()
	s, err := disk.Open(disk.Config{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	for n := range puts {
		var p docindex.Puts
		p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/%d", n%100, n)})
		if _, err := s.Put(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
	}
	path = t.TempDir()
	if err := os.CopyFS(filepath.Join(path, "x"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(path, "x", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	return filepath.Join(path, "x"), slices.Max(logs)
}

// opens opens a copy of a crashed store with another newest log, and returns how many URLs it has.
func opens(t *testing.T, path, log string, text []byte) (urls int, err error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(log)), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := disk.Open(disk.Config{Path: dir})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	n, err := s.Count(t.Context(), nil)
	return int(n.Scheduled), err
}

// TestDamagedLog damages a log with 1,320 acknowledged URLs. If a byte in the first nine tenths is
// bad, Open must fail. If the log was cut, as by a crash, Open must succeed.
func TestDamagedLog(t *testing.T) {
	const puts = 1320
	path, log := crashed(t, puts)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := opens(t, path, log, text); n != puts || err != nil {
		t.Fatalf("untouched: %d URLs, %v", n, err)
	}
	for at := 0; at < len(text)*9/10; at += len(text) / 23 {
		bad := slices.Clone(text)
		bad[at] ^= 0x10
		n, err := opens(t, path, log, bad)
		if err == nil {
			t.Errorf("byte %d of %d is bad, and %d of %d URLs are served in silence", at, len(text), n, puts)
		} else if !strings.Contains(err.Error(), "truncate -s") {
			t.Errorf("byte %d is bad: %v; want what to do", at, err)
		}
		clear(bad[at : at+min(1000, len(text)-at)]) // a hole
		if _, err := opens(t, path, log, bad); err == nil {
			t.Errorf("a hole at byte %d is served in silence", at)
		}
	}
	for at := 1000; at < len(text); at += len(text) / 11 {
		if n, err := opens(t, path, log, text[:at]); err != nil || n > puts {
			t.Errorf("cut at byte %d: %d URLs, %v; want it to open", at, n, err)
		}
		zeros := slices.Concat(text[:at], make([]byte, 100_000)) // space that was allocated beforehand
		if _, err := opens(t, path, log, zeros); err != nil {
			t.Errorf("cut at byte %d, with zeros: %v; want it to open", at, err)
		}
	}
	var number int
	if _, err := fmt.Sscanf(filepath.Base(log), "%d.log", &number); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(log, log+".kept"); err != nil {
		t.Fatal(err)
	}
	// a reused log file without chunks of its own yet
	if _, err := opens(t, path, fmt.Sprintf("%06d.log", number+1), text); err != nil {
		t.Errorf("a log file with another log's records behind its end: %v; want it to open", err)
	}
}

// TestMarkerIsMissing opens a store that was copied without the file that names the list of its
// tables. Open must fail and leave all files as they are: with the file back, the store is whole.
func TestMarkerIsMissing(t *testing.T) {
	const puts = 10
	for _, closed := range []bool{false, true} {
		path, _ := crashed(t, puts)
		pattern := filepath.Join(t.TempDir(), "index[1") // which is no valid pattern
		if err := os.Rename(path, pattern); err != nil {
			t.Fatal(err)
		}
		path = pattern
		if closed { // its URLs are in a table
			s, err := disk.Open(disk.Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		markers, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*", "marker.manifest.*"))
		if err != nil || len(markers) != 1 {
			t.Fatal(markers, err)
		}
		aside := filepath.Join(t.TempDir(), "marker")
		if err := os.Rename(markers[0], aside); err != nil {
			t.Fatal(err)
		}
		if _, err := disk.Open(disk.Config{Path: path}); err == nil || !strings.Contains(err.Error(), "put back") {
			t.Fatalf("closed %v: Open without %s: %v; want an error that says what to do", closed, markers[0], err)
		}
		if err := os.Rename(aside, markers[0]); err != nil {
			t.Fatal(err)
		}
		s, err := disk.Open(disk.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.Count(t.Context(), nil)
		if err != nil || n.Scheduled != puts {
			t.Errorf("closed %v: %d URLs, %v; want %d", closed, n.Scheduled, err, puts)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
