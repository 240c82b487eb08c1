package httpserver_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/httpserver"
	"urlserver/docindex/memory"
)

// call sends a request to the handler of s, without a network.
func call(s docindex.Store, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/docindex/"+path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	httpserver.Handler(s).ServeHTTP(w, r)
	return w
}

// wantError checks the form of an answer that says no.
func wantError(t *testing.T, w *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	var answer struct{ Error string }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Errorf("answer %q is not JSON: %v", w.Body, err)
	}
	if w.Code != status || !strings.Contains(answer.Error, text) {
		t.Errorf("answer is %d %q; want %d and %q", w.Code, answer.Error, status, text)
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text)) // a Buffer takes everything
	w.Close()
	return b.String()
}

func TestHandlerRefuses(t *testing.T) {
	bomb := zipped(strings.Repeat(" ", 65<<20))
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		text                     string
	}{
		{name: "wrong method", method: "GET", path: "candidates", status: 405, text: "POST"},
		{name: "wrong method, outcomes", method: "PUT", path: "outcomes", status: 405, text: "POST"},
		{name: "wrong method, urls", method: "DELETE", path: "urls", status: 405, text: "POST"},
		{name: "wrong path", method: "POST", path: "nothing", status: 404, text: "no such path"},
		{name: "no body", method: "POST", path: "candidates", status: 400, text: `{"max"`},
		{name: "no max", method: "POST", path: "candidates", body: "{}", status: 400, text: "max is 0"},
		{name: "negative max", method: "POST", path: "candidates", body: `{"max":-1}`, status: 400, text: "max is -1"},
		{name: "max of a wrong type", method: "POST", path: "candidates", body: `{"max":"1"}`, status: 400,
			text: "max: a JSON string is of the wrong type"},
		{name: "reject of a wrong type", method: "POST", path: "candidates", body: `{"max":1,"reject":"a"}`,
			status: 400, text: "reject: a JSON string is of the wrong type"},
		{name: "more behind", method: "POST", path: "candidates", body: `{"max":1}{"max":1}`, status: 400,
			text: "after top-level"},
		{name: "not gzip", method: "POST", path: "candidates", body: `{"max":1}`,
			header: []string{"Content-Encoding", "gzip"}, status: 400, text: "not gzip"},
		{name: "unknown coding", method: "POST", path: "urls", body: `http://a.example/`,
			header: []string{"Content-Encoding", "br"}, status: 400, text: "br"},
		{name: "crawl with a percent sign", method: "POST", path: "urls?crawl=100%", body: `http://a.example/`,
			status: 400, text: "query: invalid URL escape"},
		{name: "crawl that is not UTF-8", method: "POST", path: "urls?crawl=%ff", body: `http://a.example/`,
			status: 400, text: "not UTF-8"},
		{name: "key that is not UTF-8", method: "GET", path: "urls?url=http://a.example/&key=%ff", status: 400,
			text: "not UTF-8"},
		{name: "counts of a crawl with a percent sign", method: "GET", path: "counts?crawl=100%", status: 400,
			text: "query: "},
		{name: "a URL with a percent sign", method: "GET", path: "urls?url=http://a.example/100%", status: 400,
			text: "query: "},
		{name: "gzip bomb", method: "POST", path: "candidates", body: bomb,
			header: []string{"Content-Encoding", "gzip"}, status: 400, text: "at most 67108864 bytes are taken"},
		{name: "gzip bomb, outcomes", method: "POST", path: "outcomes", body: bomb,
			header: []string{"Content-Encoding", "gzip"}, status: 400, text: "at most 67108864 bytes are taken"},
		{name: "long line of outcomes", method: "POST", path: "outcomes", body: strings.Repeat(" ", 65<<10),
			status: 400, text: "line 1: longer than 65536 bytes; none was taken"},
		{name: "cut gzip", method: "POST", path: "outcomes", body: zipped("{}")[:12],
			header: []string{"Content-Encoding", "gzip"}, status: 400, text: "EOF"},
		{name: "outcome without doc_id", method: "POST", path: "outcomes", body: `{"outcome":"done"}`,
			status: 400, text: "line 1: no doc_id"},
		{name: "unknown outcome", method: "POST", path: "outcomes", body: `{"doc_id":"1","outcome":"gone"}`,
			status: 400, text: "done, timeout, robots"},
		{name: "broken outcome", method: "POST", path: "outcomes",
			body: "{\"doc_id\":\"1\",\"outcome\":\"done\"}\n\nx\n", status: 400, text: "line 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, call(memory.New(), c.method, c.path, c.body, c.header...), c.status, c.text)
		})
	}
}

// upload is the answer to a body of URLs.
type upload struct {
	Error               string
	New, Known, Invalid int
	Errors              []string
}

func putBody(t *testing.T, s docindex.Store, body string, header ...string) (up upload) {
	t.Helper()
	w := call(s, "POST", "urls", body, header...)
	if err := json.Unmarshal(w.Body.Bytes(), &up); err != nil || up.Errors == nil {
		t.Fatalf("answer %d %q: %v; want JSON with a list of errors", w.Code, w.Body, err)
	}
	if good := up.Error == ""; good != (w.Code == 200) {
		t.Errorf("answer is %d with error %q", w.Code, up.Error)
	}
	return up
}

func (u upload) want(t *testing.T, isNew, known int, errors ...string) {
	t.Helper()
	if u.New != isNew || u.Known != known || u.Invalid != len(errors) || len(u.Errors) != min(len(errors), 10) {
		t.Fatalf("answer is %+v; want %d new, %d known, %d invalid", u, isNew, known, len(errors))
	}
	for i, text := range u.Errors {
		if !strings.Contains(text, errors[i]) {
			t.Errorf("error %q; want %q", text, errors[i])
		}
	}
}

func TestPutPlain(t *testing.T) {
	s := memory.New()
	body := "\ufeffhttp://a.example/\r\n\r\n  http://b.example/x#y  " +
		"\nHTTP://A.example\n#http://c.example/\nftp://c.example/\n" +
		"http://a.example/" + strings.Repeat("x", 9000) + "\n" + strings.Repeat("y",
		200_000) + "\nhttp://c.example/last"
	putBody(t, s, body, "Content-Type", "text/plain; charset=utf-8").
		want(t, 3, 1, "line 5:", "line 6:", "line 7:", "line 8: longer")
	putBody(t, s, zipped("http://c.example/last\nhttp://d.example/\n"), "Content-Encoding", "gzip").want(t, 1, 1)
}

func TestPutJSON(t *testing.T) {
	s := memory.New()
	body := `{"url":"http://a.example/1","doc_id":"one","priority":2,"crawl":"c","key":"k","metadata":{"z":["1"],"a":[]}}
{"url":"http://a.example/2","doc_id":12345678901234567890}
{"url":"http://a.example/3","doc_id":"one"}
{"url":"http://a.example/4","doc_id":"with space"}
{"doc_id":"5"}
http://a.example/6
{"url":"http://a.example/7","metadata":{"a":"b"}}
{"url":"http://a.example/8","metadata":{"a":[null]}}
{"url":"http://a.example/9","metadata":{"a":null}}
{"url":"http://a.example/10","metadata":null,"doc_id":""}
{"url":"http://a.example/2"}
{"url":"http://a.example/12","metadata":{"a":["` + strings.Repeat("m", docindex.MaxExtra) + `"]}}
`
	putBody(t, s, body, "Content-Type", "application/x-ndjson").want(t, 3, 1,
		"line 4: doc_id", "line 5: no url", "line 6: not a JSON", "line 7: metadata", "line 8: metadata",
		"line 9: metadata", "line 12: crawl, key and metadata", "line 3: doc_id \"one\": taken by http://a.example/1")
	d, err := s.Document(t.Context(), []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %d %s %s %s", d.URL, d.Priority, d.Crawl, d.Key, d.Metadata)
	if want := `http://a.example/1 2 c k {"a":[],"z":["1"]}`; got != want {
		t.Errorf("kept is %s; want %s", got, want)
	}
	if _, err := s.Document(t.Context(), []byte("12345678901234567890")); err != nil {
		t.Errorf("a big number for a doc_id: %v", err)
	}
}

func TestPutType(t *testing.T) {
	body := "http://a.example/\n{\"url\":\"http://b.example/\"}\n"
	for _, c := range []struct {
		contentType string
		isNew       int
	}{
		{contentType: "text/plain", isNew: 1},
		{contentType: "application/x-ndjson", isNew: 1},
		{contentType: "application/json", isNew: 1},
		{contentType: "application/x-www-form-urlencoded", isNew: 2}, // what curl says unasked
		{contentType: "", isNew: 2},
	} {
		if up := putBody(t, memory.New(), body, "Content-Type", c.contentType); up.New != c.isNew {
			t.Errorf("Content-Type %q: %+v; want %d new", c.contentType, up, c.isNew)
		}
	}
}

func TestPutMany(t *testing.T) {
	var body strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&body, "http://h%d.example/%d\n", i%9, i)
		if i%100 == 0 {
			fmt.Fprintf(&body, "not a URL\n")
		}
	}
	s := memory.New()
	up := putBody(t, s, body.String())
	up.want(t, 5000, 0, slices.Repeat([]string{"not a URL"}, 50)...)
	if n := s.Stats().Scheduled; n != 5000 {
		t.Errorf("%d are scheduled; want 5000", n)
	}
	// What came before a body broke off is there.
	var broken strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&broken, "http://other.example/%d\n", i)
	}
	text := zipped(broken.String())
	up = putBody(t, s, text[:len(text)-1], "Content-Encoding", "gzip")
	if up.Error == "" || up.New != 1500 {
		t.Errorf("a body without its end: %+v; want an error and 1500 new", up)
	}
}

func TestServeCandidates(t *testing.T) {
	s := memory.New()
	putBody(t, s, `{"url":"http://b.example/1","doc_id":"x\"y","priority":7}
{"url":"http://a.example/1"}
{"url":"http://[::1]/1"}
{"url":"http://xn--bcher-kva.example/1"}`)
	w := call(s, "POST", "candidates", `{"max":2,"reject":["A.example","[::1]","unknown..","bücher.example"]}`)
	if want := "{\"doc_id\":\"x\\\"y\",\"url\":\"http://b.example/1\",\"priority\":7}\n"; w.Code != 200 ||
		w.Body.String() != want {
		t.Errorf("answer is %d %q; want %q", w.Code, w.Body, want)
	}
	if got := w.Header().Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("Content-Type is %q; want application/x-ndjson", got)
	}
	if w := call(s, "POST", "candidates", `{"max":9223372036854775807}`); strings.Count(w.Body.String(), "\n") != 3 {
		t.Errorf("answer is %q; want three lines", w.Body)
	}
	if w := call(s, "POST", "candidates", `{"max":1,"reject":null}`); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("answer is %d %q; want 200 and nothing", w.Code, w.Body)
	}
}

func TestServeGzip(t *testing.T) {
	for _, c := range []struct {
		accept string
		want   bool
	}{
		{accept: "gzip", want: true},
		{accept: "br, GZIP;q=0.5", want: true},
		{accept: "gzip;q=1.0", want: true},
		{accept: "gzip;q=0"},
		{accept: "gzip; q=0.0"},
		{accept: "br"},
		{accept: ""},
	} {
		s := memory.New()
		var body strings.Builder
		for i := range 100 {
			fmt.Fprintf(&body, "http://a.example/%d\n", i)
		}
		putBody(t, s, body.String())
		w := call(s, "POST", "candidates", `{"max":100}`, "Accept-Encoding", c.accept)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != c.want {
			t.Errorf("Accept-Encoding %q: gzip %v; want %v", c.accept, got, c.want)
		}
		var text io.Reader = w.Body
		if c.want {
			var err error
			if text, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		all, err := io.ReadAll(text)
		if n := bytes.Count(all, []byte("\n")); err != nil || n != 100 {
			t.Errorf("Accept-Encoding %q: %d lines, %v; want 100", c.accept, n, err)
		}
	}
}

func TestServeOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		putBody(t, s, "http://a.example/1\nhttp://a.example/2\nhttp://a.example/3")
		call(s, "POST", "candidates", `{"max":3}`)
		lines := `{"doc_id":"1","url":"http://a.example/1","outcome":"done","status":200,"attempts":1,"at":"2026-01-02T03:04:05Z"}` +
			"\n\n" + `{"doc_id":2,"outcome":"robots"}` + "\n" + `{"doc_id":"none","outcome":"dns"}`
		// One bad line, and none is taken.
		wantError(t, call(s, "POST", "outcomes", lines+"\n{}"), 400, "line 5")
		if n := s.Stats().Completed; n != 0 {
			t.Errorf("%d are completed; want none", n)
		}
		if w := call(s, "POST", "outcomes", zipped(lines), "Content-Encoding", "gzip"); w.Code != 204 ||
			w.Body.Len() > 0 {
			t.Errorf("answer is %d %q; want 204", w.Code, w.Body)
		}
		if n := s.Stats().Completed; n != 2 {
			t.Errorf("%d are completed; want 2", n)
		}
		time.Sleep(docindex.RemoteLease + time.Second)
		if w := call(s, "POST", "candidates", `{"max":3}`); !strings.Contains(w.Body.String(), "http://a.example/3") {
			t.Errorf("answer after the lease is %q; want the third again", w.Body)
		}
	})
}

// failing is a store that has its own troubles.
type failing struct {
	docindex.Store
	err error
}

func (f failing) Put(context.Context, *docindex.Puts) (docindex.PutResult, error) {
	return docindex.PutResult{New: 1}, f.err
}
func (f failing) Outcomes(context.Context, *docindex.Outcomes) error { return f.err }
func (f failing) Lease(context.Context, int, []string, time.Duration, *docindex.Batch) error {
	return f.err
}

func TestStoreFails(t *testing.T) {
	s := failing{err: errors.New("disk on fire")}
	wantError(t, call(s, "POST", "candidates", `{"max":1}`), http.StatusInternalServerError, "disk on fire")
	wantError(t, call(s, "POST", "outcomes", ``), http.StatusInternalServerError, "disk on fire")
	wantError(t, call(s, "POST", "urls", `http://a.example/`), http.StatusInternalServerError, "disk on fire")
	full := failing{err: fmt.Errorf("the disk is %w", docindex.ErrFull)}
	for where, body := range map[string]string{"candidates": `{"max":1}`, "outcomes": ``, "urls": `http://a.example/`} {
		wantError(t, call(full, "POST", where, body), http.StatusInsufficientStorage, "the disk is full")
	}
	wantError(t, call(failing{err: docindex.ErrUnwanted}, "POST", "outcomes", ``),
		http.StatusNotImplemented, "not want")
}

// FuzzURLs puts any body: each line is counted once, and what can be handed out keeps to the
// protocol.
func FuzzURLs(f *testing.F) {
	f.Add("http://a.example/\r\n\nhttp://b.example/ü?q=\\ \"#f\nx", "text/plain")
	f.Add(`{"url":"http://a.example/","doc_id":"3","metadata":{"a":["b"]}}`+"\n"+
		`{"url":"http://b.example","doc_id":4}`, "application/json")
	f.Add("http://u:p@[::ffff:1.2.3.4]:80/\nhttp://0x7f.1/\n{}", "")
	f.Fuzz(func(t *testing.T, body, contentType string) {
		s := memory.New()
		w := call(s, "POST", "urls", body, "Content-Type", contentType)
		var up upload
		if err := json.Unmarshal(w.Body.Bytes(), &up); err != nil || w.Code != 200 {
			t.Fatalf("answer %d %q, %v", w.Code, w.Body, err)
		}
		st := s.Stats()
		if most := strings.Count(body, "\n") + 1; up.New+up.Known+up.Invalid > most || up.New != st.Scheduled {
			t.Errorf("%+v of %d lines, %d scheduled", up, most, st.Scheduled)
		}
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 1<<20, nil, &b); err != nil || b.Len() != up.New {
			t.Errorf("%d candidates, %v; want %d", b.Len(), err, up.New)
		}
		for i := range b.Len() {
			c := b.At(i)
			if bad := func(r rune) bool { return r <= ' ' || r > '~' }; len(c.DocID) == 0 || len(c.DocID) > 64 ||
				bytes.ContainsFunc(c.DocID, bad) || bytes.ContainsFunc(c.URL, bad) {
				t.Errorf("candidate %q %q breaks the protocol", c.DocID, c.URL)
			}
			if res := again(t, s, c.URL); res.New != 0 || len(res.Refused) != 0 {
				// One that was put with a crawl or key is another document without.
				if d, err := s.Document(t.Context(), c.DocID); err != nil || len(d.Crawl)+len(d.Key) == 0 {
					t.Errorf("%q is stored, but not known: %+v, %v", c.URL, res, err)
				}
			}
		}
	})
}

func again(t *testing.T, s docindex.Store, url []byte) docindex.PutResult {
	var p docindex.Puts
	if err := p.Add(docindex.Put{URL: url}); err != nil {
		t.Errorf("%q is stored, but cannot be put: %v", url, err)
	}
	res, err := s.Put(t.Context(), &p)
	if err != nil {
		t.Error(err)
	}
	return res
}
