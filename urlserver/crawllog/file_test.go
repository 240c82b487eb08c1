package crawllog

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPieceOfALine lets a write end within a line: the file keeps whole lines only, and the next
// write goes on with the rest.
func TestPieceOfALine(t *testing.T) {
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Skip(err)
	}
	var text []byte
	for i := range 3 {
		out := outcomes(i, 1).At(0)
		text = appendLine(text, &out)
	}
	size := len(text) / 3
	r := rotating{path: filepath.Join(t.TempDir(), "crawl.log"), max: maxFile, keep: kept}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(2*size + 5),
		Max: was.Max}); err != nil {
		t.Skip(err)
	}
	n, err := r.write(text)
	if restored := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); restored != nil {
		t.Fatal(restored)
	}
	if n != 2*size || !errors.Is(err, unix.EFBIG) {
		t.Fatalf("write = %d, %v; want %d and that the file is too large", n, err, 2*size)
	}
	wantIDs(t, 0, 2, r.path)
	if n, err := r.write(text[n:]); n != size || err != nil {
		t.Fatalf("write of the rest = %d, %v", n, err)
	}
	wantIDs(t, 0, 3, r.path)
	r.close()
}

// TestOthersRotate: what others do with the file holds at once. A file that was renamed or removed gets no
// further line, and one that was truncated begins anew.
func TestOthersRotate(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(path string) error
		moved int // lines in path.old
	}{
		"renamed":   {do: func(path string) error { return os.Rename(path, path+".old") }, moved: 2},
		"removed":   {do: os.Remove},
		"truncated": {do: func(path string) error { return os.Truncate(path, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			var lines [4][]byte
			for i := range lines {
				out := outcomes(i, 1).At(0)
				lines[i] = appendLine(nil, &out)
			}
			r := rotating{path: filepath.Join(t.TempDir(), "crawl.log"), max: int64(len(lines[0])) * 3, keep: kept}
			defer r.close()
			for i, line := range lines {
				if i == 2 {
					if err := c.do(r.path); err != nil {
						t.Fatal(err)
					}
				}
				if n, err := r.write(line); n != len(line) || err != nil {
					t.Fatalf("write = %d, %v", n, err)
				}
			}
			wantIDs(t, 2, 2, r.path)
			if c.moved > 0 {
				wantIDs(t, 0, c.moved, r.path+".old")
			}
			if _, err := os.Stat(r.path + ".1"); err == nil {
				t.Error("the file was rotated with two lines in it; it has room for three")
			}
		})
	}
}
