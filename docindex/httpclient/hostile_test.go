package httpclient_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/httpclient"
)

// answer serves one text as an index would.
func answer(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		io.WriteString(w, text)
	})
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 9000)
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{name: "nothing", body: ""},
		{name: "empty lines", body: "\n\r\n\n"},
		{name: "number for an id, priority, no line end",
			body: `{"doc_id":12345678901234567890,"url":"http://a.example","priority":-99999999999}`,
			want: []string{"12345678901234567890 http://a.example/ -2147483648"}},
		{name: "byte order mark", body: "\ufeff" + `{"doc_id":"1","url":"http://a.example/"}`,
			want: []string{"1 http://a.example/ 0"}},
		{name: "made the standard's", body: `{"doc_id":"1","url":" HTTP://A.Example:80/ü/../x y#z"}`,
			want: []string{"1 http://a.example/x%20y 0"}},
		{name: "no id", body: `{"url":"http://a.example/"}`, want: []string{"skipped 1"}},
		{name: "unusable ids", body: `{"doc_id":"a b","url":"http://a.example/"}` + "\n" +
			`{"doc_id":"","url":"http://a.example/"}` +
			"\n" + `{"doc_id":"` + strings.Repeat("1",
			65) + `","url":"http://a.example/"}` + "\n" + `{"doc_id":"1\n2","url":"http://a.example/"}`,
			want: []string{"skipped 4"}},
		{name: "id of 64", body: `{"doc_id":"` + strings.Repeat("1", 64) + `","url":"http://a.example/"}`,
			want: []string{strings.Repeat("1", 64) + " http://a.example/ 0"}},
		{name: "unusable URLs", body: `{"doc_id":"1"}` + "\n" + `{"doc_id":"2","url":"/x"}` + "\n" +
			`{"doc_id":"3","url":"ftp://a.example/"}` +
			"\n" + `{"doc_id":"4","url":7}`,
			want: []string{"invalid 1 ", "invalid 2 /x", "invalid 3 ftp://a.example/", "invalid 4 "}},
		{name: "long URL", body: `{"doc_id":"1","url":"http://a.example/` + long + `"}`,
			want: []string{"invalid 1 http://a.example/" + long}},
		{name: "unusable priority", body: `{"doc_id":"1","url":"http://a.example/","priority":"high"}`,
			want: []string{"invalid 1 http://a.example/"}},
		{name: "garbage between", body: "<html>\n" + `{"doc_id":"1","url":"http://a.example/"}` +
			"\n\x00\xff\n[]\nnull\n" + `{"doc_id":"2","url":"http://b.example/"}`,
			want: []string{"1 http://a.example/ 0", "2 http://b.example/ 0", "skipped 4"}},
		{name: "line too long", body: strings.Repeat(long, 10) + "\n" + `{"doc_id":"1","url":"http://a.example/"}`,
			want: []string{"1 http://a.example/ 0", "skipped 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b docindex.Batch
			if err := serve(t, answer(c.body), httpclient.Config{}).Candidates(t.Context(), 10, nil, &b); err != nil {
				t.Fatal(err)
			}
			if got := show(&b); !slices.Equal(got, c.want) {
				t.Errorf("candidates are %q; want %q", got, c.want)
			}
		})
	}
}

// many makes n candidates.
func many(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "{\"doc_id\":\"%d\",\"url\":\"http://a.example/%d\"}\n", i, i)
	}
	return text.String()
}

func TestSurplus(t *testing.T) {
	for _, c := range []struct {
		name string
		sent int
		took int
		err  error
	}{
		{name: "as asked", sent: 10, took: 10},
		{name: "more", sent: 39, took: 39},
		{name: "four times", sent: 40, took: 40},
		{name: "too many", sent: 41, took: 40, err: httpclient.ErrSurplus},
		{name: "far too many", sent: 100_000, took: 40, err: httpclient.ErrSurplus},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b docindex.Batch
			err := serve(t, answer(many(c.sent)), httpclient.Config{}).Candidates(t.Context(), 10, nil, &b)
			if b.Len() != c.took || !errors.Is(err, c.err) {
				t.Errorf("%d candidates, %v; want %d, %v", b.Len(), err, c.took, c.err)
			}
		})
	}
}

func TestContentType(t *testing.T) {
	for _, c := range []struct {
		contentType, body string
		bad               bool
	}{
		{contentType: "application/x-ndjson", body: many(1)},
		{contentType: "application/x-ndjson; charset=utf-8", body: many(1)},
		{contentType: "application/jsonl", body: many(1)},
		{contentType: "text/plain", body: many(1)},
		{contentType: "text/html", body: "<html>log in", bad: true},
		{contentType: "text/html", body: ""},
		{contentType: "image/png", body: many(1), bad: true},
	} {
		cl := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.contentType)
			io.WriteString(w, c.body)
		}), httpclient.Config{})
		var b docindex.Batch
		if err := cl.Candidates(t.Context(), 1, nil, &b); err != nil != c.bad || b.Skipped() > 0 {
			t.Errorf("%s %.20q: %v, %d skipped; want an error: %v", c.contentType, c.body, err, b.Skipped(), c.bad)
		}
	}
}

// TestEndless is an index that never stops, in ways that cost most.
func TestEndless(t *testing.T) {
	noise := make([]byte, 32<<10)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	for _, c := range []struct {
		name string
		text string
		zip  bool
	}{
		{name: "garbage", text: string(noise)},
		{name: "empty lines", text: strings.Repeat("\n", 32<<10)},
		{name: "one line", text: strings.Repeat("x", 32<<10)},
		{name: "gzip bomb", text: strings.Repeat(" ", 1<<20), zip: true},
		{name: "invalid lines", text: strings.Repeat("{\"doc_id\":\"1\"}\n", 1000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			gone := make(chan struct{})
			cl := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				defer close(gone)
				endless(w, c.text, c.zip)
			}), httpclient.Config{})
			var b docindex.Batch
			if err := cl.Candidates(t.Context(), 10, nil, &b); err == nil {
				t.Error("no error")
			}
			if n := b.Skipped() + b.EndedLen(); n > 50 {
				t.Errorf("%d lines were looked at; want about 40", n)
			}
			<-gone // the connection was closed
		})
	}
}

// endless writes until the client has gone.
func endless(w http.ResponseWriter, text string, zip bool) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	var out io.Writer = w
	if zip {
		w.Header().Set("Content-Encoding", "gzip")
		out = gzip.NewWriter(w)
	}
	for {
		if _, err := io.WriteString(out, text); err != nil {
			return
		}
	}
}

// TestCut closes the connection after each byte of an answer: what is whole is taken, what is not
// is dropped.
func TestCut(t *testing.T) {
	body := many(2)
	whole := fmt.Sprintf(
		"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	head := len(whole) - len(body)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := client(t, httpclient.Config{URL: "http://" + l.Addr().String()})
	for cut := range len(whole) {
		done := make(chan error)
		go func() { done <- answerOnce(l, whole[:cut]) }()
		var b docindex.Batch
		err := c.Candidates(t.Context(), 10, nil, &b)
		if err == nil {
			t.Errorf("an answer cut after %d of %d bytes is taken for whole", cut, len(whole))
		}
		want := 0
		if cut > head {
			want = strings.Count(whole[head:cut], "\n")
		}
		if b.Len() != want || b.Skipped() != 0 {
			t.Errorf("cut after %d bytes: %q; want %d", cut, show(&b), want)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// answerOnce takes a connection, reads a request's headers and a little more, and sends text.
func answerOnce(l net.Listener, text string) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	var got []byte
	for buf := make([]byte, 4096); !bytes.HasSuffix(got, []byte("}")); { // the end of the JSON body
		n, err := conn.Read(buf)
		if err != nil {
			return err
		}
		got = append(got, buf[:n]...)
	}
	_, err = io.WriteString(conn, text)
	return err
}

func TestCutGzip(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	io.WriteString(w, many(1000))
	w.Close()
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(zipped.Bytes()[:zipped.Len()/2])
	}), httpclient.Config{})
	var b docindex.Batch
	err := c.Candidates(t.Context(), 1000, nil, &b)
	if !errors.Is(err, io.ErrUnexpectedEOF) || b.Len() < 100 || b.Skipped()+b.EndedLen() > 0 {
		t.Errorf("half of a gzip stream: %v, %d candidates, %d skipped; want an error and what came", err,
			b.Len(), b.Skipped())
	}
}

// TestSlow is an index that takes its time, before the headers and within the body.
func TestSlow(t *testing.T) {
	for _, c := range []struct {
		name, first string
		want        int
	}{
		{name: "no headers"},
		{name: "no end", first: many(2) + `{"doc_id":"`, want: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			done := make(chan struct{})
			cl := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.first != "" {
					w.Header().Set("Content-Type", "application/x-ndjson")
					io.WriteString(w, c.first)
					http.NewResponseController(w).Flush()
				}
				<-done
			}), httpclient.Config{Timeout: 10 * time.Second})
			defer close(done)
			var b docindex.Batch
			err := cl.Candidates(t.Context(), 10, nil, &b)
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() || b.Len() != c.want {
				t.Errorf("%v, %d candidates; want a timeout and %d", err, b.Len(), c.want)
			}
		})
	}
}

// TestHugeHeaders is an answer whose headers have no end.
func TestHugeHeaders(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 1<<20))
	}), httpclient.Config{})
	var b docindex.Batch
	if err := c.Candidates(t.Context(), 10, nil, &b); err == nil || !strings.Contains(err.Error(), "exceeded") {
		t.Errorf("a megabyte of headers: %v; want an error", err)
	}
}
