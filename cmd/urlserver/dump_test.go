package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"urlserver/docindex/export"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
)

const dumped = `{"set":"delay","key":"a.example","crawlID":"DEFAULT","value":"5"}
{"known":{"info":{"url":"http://a.example/","key":"a.example","crawlID":"DEFAULT"},"refetchableFromDate":"4000000001"},"ID":"doc-a","creationDate":"1000"}
{"known":{"info":{"url":"http://b.example/","key":"b.example","metadata":{"m":{"values":["v"]},"urlserver.priority":{"values":["7"]}},"crawlID":"c"},"refetchableFromDate":"4000000000"},"ID":"doc-b","creationDate":"2000"}
{"end":"2"}
`

// TestDump copies an index from one daemon to another, by each kind of file.
func TestDump(t *testing.T) {
	first := startDaemon(t, settings(t, `http.token = "secret"`))
	command(t, "", "export", "--at", first.at, "-").want(t, 1, "", "give it with --token")
	command(t, dumped, "import", "--at", first.at, "-").want(t, 1, "", "give it with --token")
	t.Setenv(tokenEnv, "secret")
	command(t, dumped, "import", "--at", first.at, "-").want(t, 0,
		`{"new":2,"known":0,"settings":1,"invalid":0}`, "import: 4 lines sent\n")
	command(t, dumped, "import", "--at", first.at, "-").want(t, 0,
		`{"new":0,"known":2,"settings":1,"invalid":0}`, "")
	if got := command(t, "", "export", "--at", first.at, "-"); got.out != dumped || got.code != 0 {
		t.Errorf("exported are\n%s, status %d, errors %s; want\n%s", got.out, got.code, got.errs, dumped)
	}
	for _, name := range []string{"x.ndjson", "x.ndjson.zst", "x.ndjson.gz"} {
		file := filepath.Join(t.TempDir(), name)
		command(t, "", "export", "--at", first.at, file).want(t, 0, `{"urls":2,"settings":1}`,
			"export: 4 lines written\n")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for ending, magic := range map[string]string{".zst": "\x28\xB5\x2F\xFD", ".gz": "\x1F\x8B"} {
			if packed := bytes.HasPrefix(text, []byte(magic)); packed != strings.HasSuffix(name, ending) {
				t.Errorf("%s begins with %q", name, text[:4])
			}
		}
		second := startDaemon(t, settings(t, ``))
		command(t, "", "import", "--at", second.at, file).want(t, 0,
			`{"new":2,"known":0,"settings":1,"invalid":0}`, "")
		if got := command(t, "", "export", "--at", second.at, "-"); got.out != dumped {
			t.Errorf("from %s the other has\n%s; want\n%s", name, got.out, dumped)
		}
	}
}

// TestImportTellsDropped: a dump has a URL of a crawl that the daemon has stopped. The command counts it
// as dropped.
func TestImportTellsDropped(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	request := requests(t, crawlOf("c1", "http://127.0.0.1/a", ""))
	if got := command(t, "", "crawl", "submit", "--at", d.at, request); got.code != 0 {
		t.Fatalf("submit: %+v", got)
	}
	exported := command(t, "", "export", "--at", d.at, "-").out
	command(t, "", "crawl", "stop", "c1", "--at", d.at).want(t, 0, `"total_purged":1`, "")
	others := strings.ReplaceAll(exported, "/a", "/b")
	command(t, others, "import", "--at", d.at, "-").want(t, 0,
		`{"new":0,"known":0,"settings":1,"invalid":0,"dropped":1}`, "")
}

// answers is a server with one answer to all requests.
func answers(t *testing.T, text string) *httptest.Server {
	x := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, text)
	}))
	t.Cleanup(x.Close)
	return x
}

// TestExportFails: after a failed export, the former file is still there.
func TestExportFails(t *testing.T) {
	for _, c := range []struct{ name, answer, want string }{
		{"nothing", "", "after 0 URLs: the daemon has broken off"},
		{"no end", `{"known":{}}` + "\n", "after 1 URL: the daemon has broken off"},
		{"cut", `{"known":{}}` + "\n" + `{"end":"`, "after 1 URL: the daemon has broken off"},
		{"fewer than the end says", `{"known":{}}` + "\n" + `{"end":"2"}` + "\n", "no line of a dump"},
		{"more after the end", `{"end":"0"}` + "\n" + `{"known":{}}` + "\n", "after the end"},
		{"trouble", `{"error":"disk on fire"}` + "\n", "could not go on: disk on fire"},
		{"another server", "<html>\n", "is --at right?"},
		{"a long line", strings.Repeat("x", maxPutLine+1) + "\n", "is --at right?"},
	} {
		for _, ending := range []string{"", ".zst"} {
			file := write(t, "dump"+ending, "as before")
			command(t, "", "export", "--at", answers(t, c.answer).URL, file).want(t, 1, "", c.want)
			text, err := os.ReadFile(file)
			if names, _ := os.ReadDir(filepath.Dir(file)); err != nil || string(text) != "as before" ||
				len(names) != 1 {
				t.Errorf("%s: the file has %q, %v, beside %v; want it as before", c.name, text, err, names)
			}
		}
	}
	command(t, "", "export", "--at", answers(t, `{"end":"0"}`+"\n").URL,
		filepath.Join(t.TempDir(), "none", "x")).want(t, 1, "", "no such file")
	command(t, "", "export", "--at", answers(t, `{"end":"0"}`+"\n").URL, os.DevNull).want(t, 0, "",
		"export: 1 line written")
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the null device is now %v, %v", info.Mode(), err)
	}
	command(t, "", "export").want(t, 2, "", "usage: urlserver export FILE|-")
}

func TestExportIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	x := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"known":{}}`+"\n")
		http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	}))
	defer x.Close()
	var out, errs strings.Builder
	code := run(ctx, []string{"export", "--at", x.URL, "-"}, strings.NewReader(""), &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit status %d, errors %q", code, errs.String())
	}
}

// TestImportRefuses: errors have the line numbers of the file, over several requests, and the other
// lines are stored.
func TestImportRefuses(t *testing.T) {
	x := newIndexDump(t)
	var text strings.Builder
	n := 2*putLines + 10
	for i := range n {
		switch {
		case i == putLines+6:
			text.WriteString("nope\n") // line 2007
		case i == 2*putLines+2:
			text.WriteString(strings.Repeat("z", 10<<20) + "\n") // line 4003
		default:
			fmt.Fprintf(&text, `{"known":{"info":{"url":"http://h%d.example/"}}}`+"\n", i)
		}
	}
	file := write(t, "x.ndjson", text.String())
	got := command(t, "", "import", "--at", x.URL, file)
	got.want(t, 1, fmt.Sprintf(`{"new":%d,"known":0,"invalid":2}`+"\n", n-2),
		file+": line 2007: neither a URLItem nor a setting")
	got.want(t, 1, "", file+": line 4003: longer than 262144 bytes")
	got.want(t, 1, "", file+": 2 lines refused")
	command(t, "nope\n", "import", "--at", x.URL, "-").want(t, 1, "", "standard input: 1 line refused")
}

// TestImportTruncated stores the part of a truncated file that can be decompressed.
func TestImportTruncated(t *testing.T) {
	x := newIndexDump(t)
	var packed bytes.Buffer
	out, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	const n = 50_000
	for i := range n {
		fmt.Fprintf(out, `{"known":{"info":{"url":"http://h%d.example/%d"}}}`+"\n", i*i%1009, i*i)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	file := write(t, "x.zst", packed.String()[:packed.Len()-packed.Len()/4])
	got := command(t, "", "import", "--at", x.URL, file)
	stored := int(indextest.Count(t, x.store, nil).Completed)
	got.want(t, 1, fmt.Sprintf(`{"new":%d,`, stored),
		fmt.Sprintf("read %s: unexpected EOF; sent before: %d lines", file, stored))
	if stored < n/4 || stored >= n {
		t.Errorf("%d of %d URLs are stored; want most", stored, n)
	}
	command(t, "", "import", "--at", x.URL, write(t, "y.zst", "text")).want(t, 1, "", "y.zst is not zstd")
}

// newIndexDump is an index that imports dumps.
func newIndexDump(t *testing.T) *index {
	x := &index{store: memory.New()}
	x.Server = httptest.NewServer(export.Handler(x.store))
	t.Cleanup(x.Close)
	return x
}
