package export_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"urlserver/docindex"
	"urlserver/docindex/export"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
)

func line(url string) string { return fmt.Sprintf(`{"known":{"info":{"url":%q}}}`+"\n", url) }

// TestBadLines has each stand between two good ones.
func TestBadLines(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"text", "http://a.test/", "neither a URLItem nor a setting"},
		{"cut", `{"known":{"info":{"url":"http://a`, "neither a URLItem nor a setting"},
		{"unknown member", `{"knwon":{}}`, `unknown field "knwon"`},
		{"unfinished dump", `{"error":"disk on fire"}`, `unknown field "error"`},
		{"nothing", `{}`, "neither discovered nor known"},
		{"no url", `{"known":{"refetchableFromDate":"1"}}`, "no url"},
		{"no host", `{"known":{"info":{"url":"text"}}}`, "has no host, and there is no key"},
		{"negative date", `{"known":{"info":{"url":"http://a.test/"},"refetchableFromDate":-1}}`, "neither a URLItem"},
		{"invalid UTF-8", "{\"known\":{\"info\":{\"url\":\"http://a.test/\xff\"}}}", "invalid UTF-8"},
		{"10 MB", strings.Repeat("x", 10<<20), "longer than 262144 bytes"},
		{"long url", `{"known":{"info":{"url":"http://a.test/` + strings.Repeat("x", 9000) + `"}}}`, "bytes"},
		{"much metadata", `{"known":{"info":{"url":"http://a.test/","metadata":{"m":{"values":["` +
			strings.Repeat("m", 9000) + `"]}}}}}`, "more than 8000"},
		{"no priority", `{"known":{"info":{"url":"http://a.test/","metadata":{"urlserver.priority":{"values":["x"]}}},"refetchableFromDate":"1"}}`, "integer of 32 bits"},
		{"two priorities",
			`{"known":{"info":{"url":"http://a.test/","metadata":{"urlserver.priority":{"values":["1","2"]}}},"refetchableFromDate":"1"}}`, "integer of 32 bits"},
		{"unknown setting", `{"set":"speed","value":"1"}`, "there are delay, block, limit, active"},
		{"no value", `{"set":"delay","key":"a.test"}`, "integer of 64 bits"},
		{"negative value", `{"set":"delay","key":"a.test","value":-1}`, "integer of 64 bits"},
		{"unknown member of a setting", `{"set":"delay","queue":"a.test","value":1}`, `unknown field "queue"`},
		{"limit of no queue", `{"set":"limit","value":"1"}`, "no key"},
		{"limit of a host", `{"set":"limit","host":"a.test","value":"1"}`, "only delay and block"},
		{"host and key", `{"set":"delay","host":"a.test","key":"a.test","value":"1"}`, "host stands beside"},
		{"long key", `{"set":"limit","value":"1","key":"` + strings.Repeat("k", 8001) + `"}`, "more than 8000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memory.New()
			res, err := export.Read(t.Context(), s,
				strings.NewReader(line("http://b.test/1")+c.line+"\n"+line("http://b.test/2")))
			if err != nil || res.New != 2 || res.Invalid != 1 ||
				!strings.HasPrefix(res.Errors[0], "line 2: ") || !strings.Contains(res.Errors[0], c.want) {
				t.Errorf("Read = %.500v, %v; want two URLs and line 2: … %s", res, err, c.want)
			}
			if len(res.Errors) > 0 && (len(res.Errors[0]) > 500 || strings.ContainsAny(res.Errors[0], "\u00a0")) {
				t.Errorf("the error is %d bytes long: %.600q", len(res.Errors[0]), res.Errors[0])
			}
			if n := indextest.Count(t, s, nil); n.Completed != 2 {
				t.Errorf("the store has %+v; want two URLs completed", n)
			}
		})
	}
	res, err := export.Read(t.Context(), memory.New(), strings.NewReader(strings.Repeat("x\n", 25)))
	if err != nil || res.Invalid != 25 || len(res.Errors) != 10 {
		t.Errorf("Read = %+v, %v; want 25 invalid lines, 10 of them named", res, err)
	}
}

// packed are many URLs, packed.
func packed(t *testing.T, n int, open func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	var text bytes.Buffer
	out, err := open(&text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := fmt.Fprint(out, line(fmt.Sprintf("http://h%d.test/%d", i*i%1009, i*i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func toZstd(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }
func toGzip(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }

// TestTruncated cuts packed dumps anywhere: what can be unpacked is stored, and the answer says
// after which line it broke off.
func TestTruncated(t *testing.T) {
	const n = 10_000
	for name, open := range map[string]func(io.Writer) (io.WriteCloser, error){"zstd": toZstd, "gzip": toGzip} {
		whole := packed(t, n, open)
		last := -1
		for _, part := range []int{len(whole) / 3, len(whole) / 2, len(whole) - 1} {
			s := memory.New()
			w := httptest.NewRecorder()
			export.Handler(s).ServeHTTP(w, httptest.NewRequest("POST", "/docindex/dump", bytes.NewReader(whole[:part])))
			var answer struct {
				Error      string
				New, Known int
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			stored := int(indextest.Count(t, s, nil).Completed)
			if want := fmt.Sprintf("after line %d: ", answer.New); w.Code != 400 ||
				!strings.Contains(answer.Error, want) || stored != answer.New {
				t.Errorf("%s, %d of %d bytes: answer %d %+v, %d stored; want 400 and %q", name, part,
					len(whole), w.Code, answer, stored, want)
			}
			if stored < last || part == len(whole)-1 && stored < n/2 {
				t.Errorf("%s, %d of %d bytes: %d stored; want no fewer than from less", name, part, len(whole), stored)
			}
			last = stored
		}
		s := memory.New()
		w := httptest.NewRecorder()
		export.Handler(s).ServeHTTP(w, httptest.NewRequest("POST", "/docindex/dump", bytes.NewReader(whole)))
		if got := int(indextest.Count(t, s, nil).Completed); w.Code != 200 || got != n {
			t.Errorf("%s: answer %d %s, %d stored; want 200 and %d", name, w.Code, w.Body, got, n)
		}
	}
}

func TestUnpackNames(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"x.zst", "", "x.zst is not zstd"},
		{"X.GZ", "{}", "X.GZ is not gzip"},
		{"x.gz", "\x1f\x8bno", "unexpected EOF"},
	} {
		in, err := export.Unpack(strings.NewReader(c.text), c.name)
		if err == nil {
			_, err = io.ReadAll(in)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %q: %v; want %s", c.name, c.text, err, c.want)
		}
	}
	// A frame that asks for more memory than is given: a window of 2 GiB.
	in, err := export.Unpack(bytes.NewReader([]byte{0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xA8, 0x01, 0x00, 0x00}), "")
	if err == nil {
		_, err = io.ReadAll(in)
	}
	if !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Errorf("a window of 2 GiB: %v; want %v", err, zstd.ErrWindowSizeExceeded)
	}
}

// failing is a store with troubles of its own.
type failing struct{ docindex.Store }

var errFire = errors.New("disk on fire")

func (f failing) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	return docindex.PutResult{New: 1}, errFire
}

func (f failing) List(ctx context.Context, s docindex.Scope, visit func(*docindex.Document) bool) error {
	if err := f.Store.List(ctx, s, visit); err != nil {
		return err
	}
	return errFire
}

func TestStoreFails(t *testing.T) {
	s := memory.New()
	read(t, s, line("http://a.test/1")+line("http://a.test/2"))
	w := httptest.NewRecorder()
	export.Handler(failing{s}).ServeHTTP(w, httptest.NewRequest("GET", "/docindex/dump", nil))
	if got := strings.Split(strings.TrimSpace(w.Body.String()), "\n"); len(got) != 3 ||
		got[2] != `{"error":"list the store: disk on fire"}` {
		t.Errorf("dump of a store that fails is %q; want two URLs and an error", got)
	}
	w = httptest.NewRecorder()
	export.Handler(failing{s}).ServeHTTP(w, httptest.NewRequest("POST", "/docindex/dump",
		strings.NewReader(line("http://a.test/3"))))
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"error":"store: disk on fire","new":1`) {
		t.Errorf("answer is %d %s; want 500 with what was stored", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	export.Handler(s).ServeHTTP(w, httptest.NewRequest("DELETE", "/docindex/dump", nil))
	if w.Code != 405 || w.Header().Get("Allow") != "GET, POST" ||
		!strings.Contains(w.Body.String(), "DELETE is not possible") {
		t.Errorf("answer is %d %s; want 405", w.Code, w.Body)
	}
	if err := export.Write(t.Context(), s, brokenPipe{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write to a closed pipe: %v", err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// FuzzRead reads any lines: each is counted once, and what was taken goes through another dump as
// it is.
func FuzzRead(f *testing.F) {
	f.Add([]byte(line("http://a.test/1") + `{"set":"block","key":"k","crawlID":"c","value":"99999999999"}`))
	f.Add([]byte(`{"known":{"info":{"url":"x","key":"k","metadata":{"urlserver.priority":{"values":["-3"]},"a":{}},"crawlID":"c"},"refetchableFromDate":9e3},"ID":"7","creationDate":"1"}`))
	f.Add([]byte("{\"set\":\"active\",\"value\":0}\n" +
		"{\"set\":\"delay\",\"value\":18446744073709551615}\n{\"end\":1}\n\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, to := memory.New(), memory.New()
		res, err := export.Read(t.Context(), s, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if most := bytes.Count(text, []byte("\n")) + 1; res.New+res.Known+res.Invalid+res.Settings > most ||
			res.New != int(indextest.Count(t, s, nil).Scheduled+indextest.Count(t, s, nil).Completed) {
			t.Errorf("%+v of %d lines, counts %+v", res, most, indextest.Count(t, s, nil))
		}
		first := write(t, s)
		read(t, to, first)
		wantText(t, write(t, to), first)
	})
}
