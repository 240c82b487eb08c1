package spider

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// record is a WARC record as a reader sees it.
type record struct {
	header textproto.MIMEHeader
	block  []byte
}

// readWARC reads a file in which each record is a gzip member.
func readWARC(t *testing.T, path string) (records []record) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in := bufio.NewReader(file)
	for {
		if _, err := in.Peek(1); err == io.EOF {
			return records
		}
		z, err := gzip.NewReader(in)
		if err != nil {
			t.Fatalf("%s: record %d: %v", path, len(records), err)
		}
		z.Multistream(false)
		records = append(records, readRecord(t, z))
	}
}

func readRecord(t *testing.T, z io.Reader) record {
	t.Helper()
	in := textproto.NewReader(bufio.NewReader(z))
	version, err := in.ReadLine()
	if err != nil || version != "WARC/1.1" {
		t.Fatalf("version %q, %v", version, err)
	}
	header, err := in.ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	length, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(in.R)
	if err != nil || len(rest) != length+4 || string(rest[length:]) != "\r\n\r\n" {
		t.Fatalf("block of %d bytes with end %q, %v; want %d", len(rest), rest[min(length, len(rest)):],
			err, length)
	}
	return record{header: header, block: rest[:length]}
}

func testAnswer(t *testing.T, path, body string) answer {
	return answer{
		url: mustURL(t, "http://a.test%s", path), addr: netip.MustParseAddr("192.0.2.1"),
		at:            time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC),
		requestHeader: http.Header{"User-Agent": {"testbot"}},
		proto:         "HTTP/1.1", status: 200, reason: "OK",
		header: http.Header{"Content-Type": {"text/html"}, "Set-Cookie": {"a=1", "b=2"}},
		body:   []byte(body),
	}
}

func TestArchive(t *testing.T) {
	w := newArchive(filepath.Join(t.TempDir(), "made", "here"), "testbot")
	truncated := testAnswer(t, "/2?x", "")
	truncated.cut, truncated.proto = cutLength, "HTTP/2.0"
	for _, a := range []answer{testAnswer(t, "/1", "<p>hello</p>"), truncated} {
		if err := w.write(t.Context(), exchange(a)); err != nil {
			t.Fatal(err)
		}
	}
	if open := files(t, w.dir, "*.warc.gz.open"); len(open) != 1 {
		t.Fatalf("open files are %v; want one", open)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	paths := files(t, w.dir, "*")
	if len(paths) != 1 || !strings.HasSuffix(paths[0], ".warc.gz") {
		t.Fatalf("files are %v; want one", paths)
	}
	records := readWARC(t, paths[0])
	if len(records) != 5 {
		t.Fatalf("%d records; want 5", len(records))
	}
	checkHeader(t, records[0], map[string]string{"WARC-Type": "warcinfo",
		"WARC-Filename": filepath.Base(paths[0])})
	checkHeader(t, records[1], map[string]string{
		"WARC-Type": "response", "WARC-Target-URI": "http://a.test/1", "WARC-IP-Address": "192.0.2.1",
		"WARC-Date":    "2026-01-02T03:04:05.600Z",
		"Content-Type": "application/http; msgtype=response", "WARC-Truncated": "", "WARC-Protocol": "",
		"WARC-Payload-Digest": "sha1:EH2SPSI2J7IA53E7X7MLVOIBNGZPXYIP",
	})
	want := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" +
		"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\n<p>hello</p>"
	if got := string(records[1].block); got != want {
		t.Errorf("response is\n%q\nwant\n%q", got, want)
	}
	checkHeader(t, records[2], map[string]string{
		"WARC-Type": "request", "WARC-Target-URI": "http://a.test/1",
		"WARC-Concurrent-To": records[1].header.Get("WARC-Record-ID"),
	})
	if got, want := string(records[2].block),
		"GET /1 HTTP/1.1\r\nHost: a.test\r\nUser-Agent: testbot\r\n\r\n"; got != want {
		t.Errorf("request is %q; want %q", got, want)
	}
	checkHeader(t, records[3], map[string]string{"WARC-Type": "response", "WARC-Truncated": "length",
		"WARC-Protocol": "h2"})
	ids := make(map[string]bool)
	for _, r := range records {
		ids[r.header.Get("WARC-Record-ID")] = true
		checkHeader(t, r, map[string]string{"WARC-Block-Digest": digest(r.block)})
	}
	if len(ids) != len(records) {
		t.Errorf("%d IDs for %d records", len(ids), len(records))
	}
}

func checkHeader(t *testing.T, r record, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := r.header.Get(name); got != value {
			t.Errorf("%s: %s is %q; want %q", r.header.Get("WARC-Type"), name, got, value)
		}
	}
}

func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestArchiveRotates(t *testing.T) {
	w := newArchive(t.TempDir(), "testbot")
	w.max = 4000
	var writing sync.WaitGroup
	for i := range 40 {
		writing.Go(func() {
			if err := w.write(t.Context(), exchange(testAnswer(t, fmt.Sprintf("/%d", i), "x"))); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	paths := files(t, w.dir, "*.warc.gz")
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Size() > w.max {
			t.Errorf("%s has %d bytes, %v; want %d at most", path, info.Size(), err, w.max)
		}
		records := readWARC(t, path)
		if records[0].header.Get("WARC-Type") != "warcinfo" {
			t.Errorf("%s begins with %v", path, records[0].header)
		}
		for _, r := range records[1:] {
			seen[r.header.Get("WARC-Type")+r.header.Get("WARC-Target-URI")]++
		}
	}
	if len(paths) < 5 || len(seen) != 80 {
		t.Errorf("%d files with %d different records; want several, 80", len(paths), len(seen))
	}
	if open := files(t, w.dir, "*.open"); len(open) != 0 {
		t.Errorf("left open: %v", open)
	}
}

// A failed write leaves nothing in the file.
func TestArchiveAfterFailedWrite(t *testing.T) {
	w := newArchive(t.TempDir(), "testbot")
	if err := w.write(t.Context(), exchange(testAnswer(t, "/1", "one"))); err != nil {
		t.Fatal(err)
	}
	good := w.file
	readOnly, err := os.Open(good.Name())
	if err != nil {
		t.Fatal(err)
	}
	w.file = readOnly
	if err := w.write(t.Context(), exchange(testAnswer(t, "/2", "two"))); err == nil {
		t.Error("a file that takes nothing gave no error")
	}
	readOnly.Close()
	w.file = good
	if _, err := good.WriteAt([]byte("half a record"), w.size); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if records := readWARC(t, files(t, w.dir, "*.warc.gz")[0]); len(records) != 3 {
		t.Errorf("%d records; want 3", len(records))
	}
}

// A document is not DONE until the archive has written its record, also if the disk is full for a
// while.
func TestArchiveInTheWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "warc")
	if err := os.WriteFile(dir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{WARC: dir, StatusTimeout: 20 * time.Second})
		pipeWeb(t, s, siteHandler)
		d := newDaemon(t, s)
		d.send("1.0.7 a 192.0.2.1 http://a.test/ok\n")
		d.want("1.0.7 WORKING")
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		d.want("1.0.7 DONE 200")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := s.Stats().ArchiveErrors; n < 3 {
			t.Errorf("%d failed writes counted; want some", n)
		}
	})
	if paths := files(t, dir, "*.warc.gz"); len(paths) != 1 || len(readWARC(t, paths[0])) != 3 {
		t.Errorf("files are %v; want one with 3 records", paths)
	}
}

func TestCloseWithoutArchive(t *testing.T) {
	if err := New(Config{}).Close(); err != nil {
		t.Error(err)
	}
	if err := New(Config{WARC: t.TempDir()}).Close(); err != nil {
		t.Error(err)
	}
}

// The Python package warcio, if installed, reads the files and finds all digests correct.
func TestWarcioReadsArchive(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here, so no second opinion on the WARC files")
	}
	if exec.Command(python, "-c", "import warcio").Run() != nil {
		t.Skip("no warcio here (pip install warcio), so no second opinion on the WARC files")
	}
	w := newArchive(t.TempDir(), "testbot")
	answers := []answer{testAnswer(t, "/1", "<p>hello</p>"), testAnswer(t, "/empty", ""),
		testAnswer(t, "/gzip", string(gzipped([]byte("x"))))}
	answers[2].header.Set("Content-Encoding", "gzip")
	for _, a := range answers {
		if err := w.write(t.Context(), exchange(a)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	path := files(t, w.dir, "*.warc.gz")[0]
	var out, faults bytes.Buffer
	const script = `
import sys
from warcio.archiveiterator import ArchiveIterator
for r in ArchiveIterator(open(sys.argv[1], 'rb'), check_digests='raise'):
    body = r.content_stream().read()
    print(r.rec_type, r.rec_headers.get_header('WARC-Target-URI'), r.http_headers.get_statuscode() if r.http_headers else '-', body.decode() if r.rec_type != 'warcinfo' else '')
`
	cmd := exec.CommandContext(t.Context(), python, "-c", script, path)
	cmd.Stdout, cmd.Stderr = &out, &faults
	if err := cmd.Run(); err != nil {
		t.Fatalf("warcio: %v\n%s", err, faults.Bytes())
	}
	want := "warcinfo None - \n" +
		"response http://a.test/1 200 <p>hello</p>\nrequest http://a.test/1 /1 \n" +
		"response http://a.test/empty 200 \nrequest http://a.test/empty /empty \n" +
		"response http://a.test/gzip 200 x\nrequest http://a.test/gzip /gzip \n"
	if out.String() != want {
		t.Errorf("warcio reads\n%swant\n%s", out.Bytes(), want)
	}
}

// TestArchiveIsPrivate: only the owner can read the files and the folder made for them.
func TestArchiveIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	w := newArchive(dir, "test")
	if err := w.write(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	check := func(pattern string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		for _, path := range append(files, dir) {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
	check("*.open")
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	check("*.gz")
}
