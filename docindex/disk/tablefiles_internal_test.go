package disk

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failingFile counts reads and writes. A write fails once the error is set.
type failingFile struct {
	vfs.File
	err           error
	reads, writes int
}

func (f *failingFile) Write(b []byte) (int, error) {
	if f.writes++; f.err != nil {
		return 0, f.err
	}
	return f.File.Write(b)
}

func (f *failingFile) ReadAt(b []byte, at int64) (int, error) {
	f.reads++
	return f.File.ReadAt(b, at)
}

func noise(rnd *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// TestTableWriter writes pieces of any length: after a sync and at the end all are in the file.
func TestTableWriter(t *testing.T) {
	fs, rnd := vfs.NewMem(), rand.New(rand.NewPCG(1, 2))
	file, err := fs.Create("table", forFlush)
	if err != nil {
		t.Fatal(err)
	}
	under := &failingFile{File: file}
	w := &tableWriter{File: under}
	var all []byte
	check := func(when string) {
		t.Helper()
		if got := contents(t, fs); !bytes.Equal(got, all) {
			t.Fatalf("%s the file has %d bytes, which are not the %d that were written", when, len(got), len(all))
		}
	}
	for i := range 300 {
		b := noise(rnd, rnd.IntN(8192))
		if i%50 == 0 {
			b = noise(rnd, rnd.IntN(3*pieceLen))
		}
		if n, err := w.Write(b); n != len(b) || err != nil {
			t.Fatalf("Write of %d bytes: %d, %v", len(b), n, err)
		}
		all = append(all, b...)
		if i%100 == 70 {
			sync := w.Sync
			if i > 100 {
				sync = w.SyncData
			}
			if err := sync(); err != nil {
				t.Fatal(err)
			}
			check("after a sync")
		}
	}
	if most := len(all)/pieceLen + 10; under.writes > most {
		t.Errorf("%d bytes took %d writes; want at most %d", len(all), under.writes, most)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	check("at the end")
}

func contents(t *testing.T, fs vfs.FS) []byte {
	t.Helper()
	f, err := fs.Open("table")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTableWriterFails tells of a failed write at the latest when the table is synced or closed.
func TestTableWriterFails(t *testing.T) {
	broken := errors.New("broken")
	for name, end := range map[string]func(w *tableWriter) error{
		"write": func(w *tableWriter) error {
			_, err := w.Write(make([]byte, pieceLen))
			return err
		},
		"sync":      (*tableWriter).Sync,
		"sync data": (*tableWriter).SyncData,
		"close":     (*tableWriter).Close,
	} {
		file, err := vfs.NewMem().Create("table", forFlush)
		if err != nil {
			t.Fatal(err)
		}
		w := &tableWriter{File: &failingFile{File: file, err: broken}}
		if n, err := w.Write([]byte("some")); n != 4 || err != nil {
			t.Fatalf("Write of little: %d, %v", n, err)
		}
		if err := end(w); !errors.Is(err, broken) {
			t.Errorf("%s: %v; want %v", name, err, broken)
		}
		if _, err := w.Write([]byte("more")); !errors.Is(err, broken) {
			t.Errorf("Write after a failed %s: %v; want %v", name, err, broken)
		}
		if err := w.Sync(); !errors.Is(err, broken) {
			t.Errorf("Sync after a failed %s: %v; want %v", name, err, broken)
		}
	}
}

// TestSequentialReader reads blocks one after the other, and some elsewhere.
func TestSequentialReader(t *testing.T) {
	fs, rnd := vfs.NewMem(), rand.New(rand.NewPCG(3, 4))
	all := noise(rnd, 20*pieceLen+12345)
	file, err := fs.Create("table", forFlush)
	if err == nil {
		_, err = file.Write(bytes.Clone(all)) // which it may change
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	if file, err = fs.Open("table"); err != nil {
		t.Fatal(err)
	}
	under := &failingFile{File: file}
	r := &sequentialReader{File: under}
	read := func(at, n int) {
		t.Helper()
		b := make([]byte, n)
		got, err := r.ReadAt(b, int64(at))
		want := all[min(at, len(all)):min(at+n, len(all))]
		if got != len(want) || !bytes.Equal(b[:got], want) || (err == nil) != (got == n) {
			t.Fatalf("ReadAt of %d bytes at %d: %d, %v; want %d", n, at, got, err, len(want))
		}
	}
	at := 0
	for at < len(all) {
		n := 1 + rnd.IntN(8192)
		read(at, n)
		at += n
	}
	if most := len(all)/pieceLen + 8; under.reads > most {
		t.Errorf("%d bytes took %d reads; want at most %d", len(all), under.reads, most)
	}
	for range 1000 {
		switch at := rnd.IntN(len(all) + 10); rnd.IntN(3) {
		case 0:
			read(at, 1+rnd.IntN(3*pieceLen))
		default:
			read(at, 100)
			read(at+100, 1+rnd.IntN(8192))
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
