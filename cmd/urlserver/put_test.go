package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"urlserver/docindex/httpserver"
	"urlserver/docindex/memory"
)

// index is an embedded index over HTTP that records requests.
type index struct {
	*httptest.Server
	store  *memory.Store
	bodies []string // of each request
	types  []string
}

func newIndex(t *testing.T) *index {
	t.Helper()
	x := &index{store: memory.New()}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read a body: %v", err)
		}
		x.bodies = append(x.bodies, string(body)) // one request at a time
		x.types = append(x.types, r.Header.Get("Content-Type"))
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		httpserver.Handler(x.store).ServeHTTP(w, r)
	}))
	t.Cleanup(x.Close)
	return x
}

func TestPutInBatches(t *testing.T) {
	x := newIndex(t)
	var text strings.Builder
	n := 2*putLines + 10
	for i := range n {
		switch {
		case i == putLines+6:
			text.WriteString("nope\n") // line 2007
		case i == 2*putLines+1:
			text.WriteString("\n")
		case i == 2*putLines+2:
			text.WriteString(strings.Repeat("z", 2*maxPutLine) + "\n") // line 4003
		default:
			fmt.Fprintf(&text, "http://h%d.example/\n", i)
		}
	}
	file := write(t, "urls.txt", strings.TrimSuffix(text.String(), "\n"))
	got := command(t, "", "put", "--at", x.URL, file)
	got.want(t, 0, fmt.Sprintf(`{"new":%d,"known":0,"invalid":2}`+"\n", n-3), "")
	got.want(t, 0, "", file+": line 2007: ")
	got.want(t, 0, "", file+": line 4003: longer than")
	got.want(t, 0, "", fmt.Sprintf("put: %d lines sent\n", n))
	if len(x.bodies) != 3 {
		t.Errorf("%d requests; want 3", len(x.bodies))
	}
	command(t, "", "put", "--at", x.URL, file).want(t, 0,
		fmt.Sprintf(`{"new":0,"known":%d,"invalid":2}`, n-3), "")
}

func TestPutManyInvalid(t *testing.T) {
	x := newIndex(t)
	got := command(t, strings.Repeat("nope\n", 15), "put", "--at", x.URL, "-")
	got.want(t, 1, `{"new":0,"known":0,"invalid":15}`, "standard input: line 10: ")
	got.want(t, 1, "", "standard input: 5 more invalid lines from line 1 to 15\n")
	got.want(t, 1, "", "nothing was put: no line is valid")
	command(t, strings.Repeat("nope\n", 11), "put", "--at", x.URL, "-").want(t, 1, "",
		"standard input: 1 more invalid line from line 1 to 11\n")
}

func TestPutBytesAreBounded(t *testing.T) {
	x := newIndex(t)
	command(t, strings.Repeat("http://a.example/"+strings.Repeat("x", 4000)+"\n", 400), "put", "--at",
		x.URL, "-").
		want(t, 0, `{"new":1,"known":399,"invalid":0}`, "")
	for _, body := range x.bodies {
		if len(body) > putBytes+5000 {
			t.Errorf("a body of %d bytes", len(body))
		}
	}
}

// put explains what is wrong with a file that is neither URLs nor NDJSON.
func TestPutHints(t *testing.T) {
	x := newIndex(t)
	for _, c := range []struct{ file, text, want string }{
		{"x.txt", "http://a.example/\n", ""},
		{"x.ndjson", `{"url":"http://a.example/"}`, ""},
		{"x.ndjson", "http://a.example/\n", "no JSON object; give a file of plain URLs another ending\n"},
		{"x.json", `[{"url":"http://a.example/"}]`, "put takes one URL a line, or one JSON object a line\n"},
	} {
		got := command(t, "", "put", "--at", x.URL, write(t, c.file, c.text))
		status := 0
		if c.want != "" {
			status = 1 // no line is valid
		}
		got.want(t, status, "", c.want)
		if hinted := strings.Contains(got.errs, "JSON object"); hinted != (c.want != "") {
			t.Errorf("%s with %s: errors %q", c.file, c.text, got.errs)
		}
	}
}

func TestPutTellsNDJSON(t *testing.T) {
	const plain, lines = "http://a.example/\n", `{"url": "http://b.example/", "priority": 3}` + "\n"
	for _, c := range []struct {
		name, file, text string
		json             bool
	}{
		{name: "plain", file: "x.txt", text: plain},
		{name: "without an ending", file: "x", text: plain},
		{name: "by ending", file: "x.ndjson", text: "\n" + lines, json: true},
		{name: "by another ending", file: "X.JSONL", text: lines, json: true},
		{name: "by content", file: "x.txt", text: lines, json: true},
		{name: "by content below space", file: "x", text: "\ufeff \r\n\t" + lines, json: true},
		{name: "empty", file: "x.txt", text: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newIndex(t)
			got := command(t, "", "put", "--at", x.URL, write(t, c.file, c.text))
			got.want(t, 0, `"invalid":0`, "")
			for _, media := range x.types {
				if json := media == "application/x-ndjson"; json != c.json {
					t.Errorf("Content-Type is %q", media)
				}
			}
			if want := min(1, len(c.text)); len(x.types) != want {
				t.Errorf("%d requests; want %d", len(x.types), want)
			}
		})
	}
}

func TestPutSeveral(t *testing.T) {
	x := newIndex(t)
	one, two := write(t, "one", "http://a.example/\nnope"),
		write(t, "two.jsonl", `{"url":"http://a.example/"}`+"\n"+`{"url":"http://b.example/"}`)
	got := command(t, "http://c.example/\n", "put", "--at", x.URL, one, "-", two)
	got.want(t, 0, `{"new":3,"known":1,"invalid":1}`, one+": line 2: ")
	got = command(t, "", "put", "--at", x.URL, one, one+"x", two)
	got.want(t, 1, `{"new":0,"known":1,"invalid":1}`, "no such file")
}

func TestPutFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		errs   string
	}{
		{name: "server error", answer: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "out of order", 500)
		}, errs: `"out of order"`},
		{name: "error as JSON", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			io.WriteString(w, `{"error":"full"}`)
		}, errs: "500 Internal Server Error: full"},
		{name: "no JSON", answer: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<html>")
		}, errs: "is --at right?"},
		{name: "redirect", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login", http.StatusFound)
		}, errs: "302 Found"},
		{name: "breaks off", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			io.WriteString(w, "{")
		}, errs: "read the answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := httptest.NewServer(c.answer)
			defer x.Close()
			got := command(t, "http://a.example/\n", "put", "--at", x.URL, "-")
			got.want(t, 1, `{"new":0,"known":0,"invalid":0}`, c.errs)
			got.want(t, 1, "", "standard input: lines from 1 on may be missing")
		})
	}
}

func TestPutIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	x := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel(); <-release }))
	defer x.Close()
	defer close(release)
	var out, errs strings.Builder
	code := run(ctx, []string{"put", "--at", x.URL, "-"}, strings.NewReader("http://a.example/\n"), &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "interrupted") ||
		strings.Contains(errs.String(), "is the daemon running") {
		t.Errorf("exit status %d, errors %q", code, errs.String())
	}
}

func TestNextLine(t *testing.T) {
	type line struct {
		text    string
		tooLong bool
	}
	for _, c := range []struct {
		name, text string
		want       []line
	}{
		{name: "nothing", text: "", want: []line{{text: ""}}},
		{name: "no end", text: "a", want: []line{{text: "a"}}},
		{name: "two", text: "a\n\nb\n", want: []line{{text: "a"}, {text: ""}, {text: "b"}, {text: ""}}},
		{name: "as long as can be", text: strings.Repeat("x", 15) + "\ny",
			want: []line{{text: strings.Repeat("x", 15)}, {text: "y"}}},
		{name: "too long", text: strings.Repeat("x", 50) + "\ny",
			want: []line{{text: strings.Repeat("x", 16), tooLong: true}, {text: "y"}}},
		{name: "too long at the end", text: strings.Repeat("x", 50),
			want: []line{{text: strings.Repeat("x", 16), tooLong: true}}},
	} {
		in := bufio.NewReaderSize(strings.NewReader(c.text), 16)
		for i, want := range c.want {
			got, tooLong, err := nextLine(in)
			if string(got) != want.text || tooLong != want.tooLong || (err == io.EOF) != (i == len(c.want)-1) {
				t.Errorf("%s: line %d is %q, %t, %v; want %+v", c.name, i, got, tooLong, err, want)
			}
		}
	}
}

// FuzzNextLine: all lines are returned in order, for any text; only long ones are cut.
func FuzzNextLine(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\n\n", strings.Repeat("x", 40) + "\ny\n", "\r\n\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const size = 16
		in := bufio.NewReaderSize(strings.NewReader(text), size)
		for i, want := range strings.Split(text, "\n") {
			got, tooLong, err := nextLine(in)
			if string(got) != want[:min(len(want), size)] || tooLong && len(want) < size || !tooLong &&
				string(got) != want {
				t.Fatalf("line %d of %q is %q, %t; want %q", i, text, got, tooLong, want)
			}
			if last := i == strings.Count(text, "\n"); last != (err == io.EOF) {
				t.Fatalf("line %d of %q: %v", i, text, err)
			}
		}
	})
}

func TestTotalSize(t *testing.T) {
	a, b := write(t, "a", "12345"), write(t, "b", "123")
	for _, c := range []struct {
		name  string
		files []string
		want  int64
	}{
		{name: "two", files: []string{a, b}, want: 8},
		{name: "standard input", files: []string{a, "-"}, want: -1},
		{name: "missing", files: []string{a, b + "x"}, want: -1},
		{name: "no file", files: []string{os.TempDir()}, want: -1},
	} {
		if got := totalSize(c.files); got != c.want {
			t.Errorf("%s: %d; want %d", c.name, got, c.want)
		}
	}
}
