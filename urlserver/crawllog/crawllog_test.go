package crawllog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"urlserver/docindex"
)

// outcomes returns n outcomes, numbered from a number on.
func outcomes(from, n int) *docindex.Outcomes {
	var o docindex.Outcomes
	for i := from; i < from+n; i++ {
		o.Add(docindex.Outcome{DocID: fmt.Append(nil, i), URL: fmt.Appendf(nil, "http://a.test/%d", i),
			At: time.Unix(1, 0)})
	}
	return &o
}

// running runs a log until stop is called.
func running(l *Log) (stop func()) {
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	return func() {
		end()
		<-done
	}
}

// messages keeps what is logged.
type messages struct {
	mu   sync.Mutex
	text strings.Builder
}

func (m *messages) Write(text []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.Write(text)
}

func (m *messages) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.String()
}

// ids returns the DOC_IDs in a file, each line of which has to be whole.
func ids(t *testing.T, path string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for one := range strings.Lines(string(text)) {
		var l line
		if err := json.Unmarshal([]byte(one), &l); err != nil || !strings.HasSuffix(one, "\n") {
			t.Fatalf("%s has the line %q: %v", path, one, err)
		}
		all = append(all, l.DocID)
	}
	return all
}

// wantIDs compares the DOC_IDs of several files, the oldest first.
func wantIDs(t *testing.T, from, n int, paths ...string) {
	t.Helper()
	var got, want []string
	for _, path := range paths {
		got = append(got, ids(t, path)...)
	}
	for i := from; i < from+n; i++ {
		want = append(want, fmt.Sprint(i))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("lines are of %v; want %v", got, want)
	}
}

func TestLine(t *testing.T) {
	at := time.Date(2026, 1, 2, 4, 4, 5, 6_789_012, time.FixedZone("", 3600))
	for _, c := range []struct {
		out  docindex.Outcome
		want string
	}{
		{docindex.Outcome{DocID: []byte("a\"b"), URL: []byte("http://a.test/?x=<&>"),
			Crawl: []byte("news"), Status: 200,
			Attempts: 2, At: at, Took: 1234567 * time.Nanosecond},
			`{"at":"2026-01-02T03:04:05.006Z","url":"http://a.test/?x=<&>","doc_id":"a\"b","crawl":"news","outcome":"done",` +
				`"status":200,"fetch_s":0.001235,"attempts":2,"via":""}`},
		{docindex.Outcome{DocID: []byte("1"), URL: []byte("http://a.test/"), Kind: docindex.Robots, At: at},
			`{"at":"2026-01-02T03:04:05.006Z","url":"http://a.test/","doc_id":"1","crawl":"DEFAULT","outcome":"robots",` +
				`"status":0,"fetch_s":null,"attempts":0,"via":""}`},
		{docindex.Outcome{DocID: []byte("1"), URL: []byte("http://a.test/"), NoStatus: true,
			Attempts: 1, At: at},
			`{"at":"2026-01-02T03:04:05.006Z","url":"http://a.test/","doc_id":"1","crawl":"DEFAULT","outcome":"done",` +
				`"status":null,"fetch_s":0,"attempts":1,"via":""}`},
	} {
		if got := string(appendLine([]byte("x"), &c.out)); got != "x"+c.want+"\n" {
			t.Errorf("line is\n%s; want\nx%s", got, c.want)
		}
	}
}

// TestRotation fills files, with a log that begins again in between, and keeps so many of them.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crawl.log")
	size := len(appendLine(nil, &docindex.Outcome{DocID: []byte("10"), URL: []byte("http://a.test/10")}))
	for from := 10; from < 90; from += 7 { // all lines have the same length
		l := New(path, zerolog.Nop())
		l.file.max, l.file.keep = int64(3*size+size/2), 8
		stop := running(l)
		l.Add(outcomes(from, 7))
		stop()
	}
	var names []string
	for n := 8; n > 0; n-- {
		names = append(names, fmt.Sprintf("%s.%d", path, n))
		if got := len(ids(t, names[len(names)-1])); got != 3 {
			t.Errorf("%s has %d lines; want 3", names[len(names)-1], got)
		}
	}
	wantIDs(t, 94-24-3, 24+3, append(names, path)...)
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 9 {
		t.Errorf("%d files, %v; want 9", len(entries), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want that only the owner reads it", info.Mode(), err)
	}
}

// TestLongLine writes lines that are longer than a file may be.
func TestLongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crawl.log")
	l := New(path, zerolog.Nop())
	l.file.max = 10
	stop := running(l)
	l.Add(outcomes(0, 3))
	stop()
	wantIDs(t, 0, 3, path+".2", path+".1", path)
}

// TestTornLine goes on behind a line that a crash has cut off.
func TestTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crawl.log")
	if err := os.WriteFile(path, []byte("{\"at\":\n{\"at\":\"20"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := New(path, zerolog.Nop())
	stop := running(l)
	l.Add(outcomes(7, 1))
	stop()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if before, is := bytes.CutPrefix(text, []byte("{\"at\":\n{\"at\":\"20\n")); !is ||
		bytes.Count(before, []byte("\n")) != 1 {
		t.Errorf("the file is %q", text)
	}
}

// onFullDisk runs a log on a disk that is full until the file is removed.
func onFullDisk(t *testing.T) (l *Log, path string, log *messages, stop func()) {
	t.Helper()
	path, log = filepath.Join(t.TempDir(), "crawl.log"), &messages{}
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Skip(err)
	}
	l = New(path, zerolog.New(log))
	return l, path, log, running(l)
}

// TestFullDisk writes to a disk that is full, and then to one that is not.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, path, log, stop := onFullDisk(t)
		l.Add(outcomes(0, 10))
		time.Sleep(time.Hour) // many tries
		l.Add(outcomes(10, 10))
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := strings.Count(log.String(), "no space left on device"); n != 1 || !l.failing.Load() {
			t.Errorf("it is logged %d times; want once: %s", n, log.String())
		}
		if l.lost.Load() != 0 || l.written.Load() != 0 {
			t.Errorf("%d lost, %d written; want none: there is room to wait", l.lost.Load(), l.written.Load())
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(maxPause)
		stop()
		wantIDs(t, 0, 20, path)
		if l.failing.Load() || l.written.Load() != 20 || !strings.Contains(log.String(), "written again") {
			t.Errorf("failing %v, %d written, log %s", l.failing.Load(), l.written.Load(), log.String())
		}
	})
}

// TestLost loses the newest lines when too many wait, and says so once.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, path, log, stop := onFullDisk(t)
		l.Add(outcomes(0, 1))
		synctest.Wait() // the writer has this one, and waits for its next try
		const more = 500
		for i := range 3 {
			l.Add(outcomes(1+i*maxWaiting/2, maxWaiting/2+more/2))
		}
		if got, want := l.lost.Load(), uint64(maxWaiting/2+3*more/2); got != want {
			t.Errorf("%d lines are lost; want %d", got, want)
		}
		if l.count() != maxWaiting {
			t.Errorf("%d wait; want %d", l.count(), maxWaiting)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "lines are lost"); n != 1 {
			t.Errorf("the loss is logged %d times; want once", n)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(maxPause)
		stop()
		if got := len(ids(t, path)); got != maxWaiting+1 || l.written.Load() != maxWaiting+1 {
			t.Errorf("%d lines are written, %d counted; want %d", got, l.written.Load(), maxWaiting+1)
		}
	})
}

// TestLostText bounds what waits by its bytes, too.
func TestLostText(t *testing.T) {
	l := New("unused", zerolog.Nop())
	var o docindex.Outcomes
	for range 1000 {
		o.Add(docindex.Outcome{URL: bytes.Repeat([]byte("x"), 8000)})
	}
	for range 3 {
		l.Add(&o)
	}
	if l.waiting.Size() > maxText+8000 || l.lost.Load() != 3000-uint64(l.count()) || l.lost.Load() == 0 {
		t.Errorf("%d bytes wait in %d outcomes, %d are lost", l.waiting.Size(), l.count(), l.lost.Load())
	}
}

// TestStopWhileFull ends within some seconds, and counts what is lost.
func TestStopWhileFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "crawl.log")
		if err := os.Symlink("/dev/full", path); err != nil {
			t.Skip(err)
		}
		l := New(path, zerolog.Nop())
		stop := running(l)
		l.Add(outcomes(0, 7))
		synctest.Wait()
		l.Add(outcomes(7, 7))
		began := time.Now()
		stop()
		if took := time.Since(began); took > 2*lastWait || l.lost.Load() != 14 {
			t.Errorf("it took %v and lost %d; want at most %v, and 14", took, l.lost.Load(), 2*lastWait)
		}
	})
}

// TestHangingDisk ends although a write hangs, as one to a disk behind a network may.
func TestHangingDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crawl.log")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	l := New(path, zerolog.Nop())
	l.last = 50 * time.Millisecond
	stop := running(l)
	l.Add(outcomes(0, 5000)) // more than a pipe holds
	stop()                   // hangs if Run waits for the write
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := io.Copy(io.Discard, reader); err != nil { // so that the write ends, and its goroutine
		t.Fatal(err)
	}
}

func TestNoLog(t *testing.T) {
	var l *Log
	l.Add(outcomes(0, 1)) // does nothing
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "is.log")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	faults := map[string]string{
		file: "", filepath.Join(dir, "new.log"): "",
		dir: "is a folder", filepath.Join(dir, "none", "crawl.log"): "no such file",
		filepath.Join(file, "crawl.log"): "not a directory",
	}
	if os.Getuid() != 0 { // root may write everywhere
		closed := t.TempDir()
		if err := os.Chmod(closed, 0o500); err != nil {
			t.Fatal(err)
		}
		faults[filepath.Join(closed, "crawl.log")] = "files cannot be made in the folder " + closed
	}
	for path, want := range faults {
		err := Check(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%s) = %v; want %q", path, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v; want that a check makes none", len(entries), err)
	}
}
