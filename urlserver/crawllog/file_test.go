package crawllog

import (
	"errors"
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
