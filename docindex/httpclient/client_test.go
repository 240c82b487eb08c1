package httpclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/httpclient"
	"urlserver/docindex/httpserver"
	"urlserver/docindex/memory"
)

// serve starts a server on a loopback address and returns a client of it.
func serve(t *testing.T, h http.Handler, cfg httpclient.Config) *httpclient.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	cfg.URL = srv.URL + cfg.URL
	return client(t, cfg)
}

func client(t *testing.T, cfg httpclient.Config) *httpclient.Client {
	t.Helper()
	c, err := httpclient.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func put(t *testing.T, s docindex.Store, urls ...string) {
	t.Helper()
	var p docindex.Puts
	for _, u := range urls {
		if err := p.Add(docindex.Put{URL: []byte(u)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

// TestPayload has a payload travel from a store to the client.
func TestPayload(t *testing.T) {
	s := memory.New()
	var p docindex.Puts
	for _, one := range []docindex.Put{
		{URL: []byte("http://a.example/"), Payload: bytes.Repeat([]byte{0, 255}, docindex.MaxPayload/2)},
		{URL: []byte("http://b.example/"), Unique: []byte("u"), Depth: 1},
	} {
		if err := p.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(httpserver.Handler(s))
	defer srv.Close()
	c := client(t, httpclient.Config{URL: srv.URL + "/docindex"})
	var b docindex.Batch
	if err := c.Candidates(t.Context(), 10, nil, &b); err != nil || b.Len() != 2 {
		t.Fatalf("%d candidates, %v", b.Len(), err)
	}
	for i := range 2 {
		want, _ := p.At(i)
		if got := b.At(i); !bytes.Equal(got.URL, want.URL) || !bytes.Equal(got.Payload, want.Payload) {
			t.Errorf("%s has a payload of %d bytes; want %d", got.URL, len(got.Payload), len(want.Payload))
		}
	}
}

// show lists what a batch has: good ones, then invalid ones, then how many were skipped.
func show(b *docindex.Batch) (all []string) {
	for i := range b.Len() {
		c := b.At(i)
		all = append(all, fmt.Sprintf("%s %s %d", c.DocID, c.URL, c.Priority))
	}
	for i := range b.EndedLen() {
		c := b.EndedAt(i)
		all = append(all, fmt.Sprintf("invalid %s %s", c.DocID, c.URL))
	}
	if b.Skipped() > 0 {
		all = append(all, fmt.Sprint("skipped ", b.Skipped()))
	}
	return all
}

// TestHandler has both ends of the contract speak to each other.
func TestHandler(t *testing.T) {
	s := memory.New()
	c := serve(t, httpserver.Handler(s), httpclient.Config{URL: "/docindex/"})
	put(t, s, "http://a.example/1", "http://b.example/1", "http://a.example/2")
	var b docindex.Batch
	if err := c.Candidates(t.Context(), 10, []string{"b.example"}, &b); err != nil {
		t.Fatal(err)
	}
	if got, want := show(&b), []string{"1 http://a.example/1 0", "3 http://a.example/2 0"}; !slices.Equal(got, want) {
		t.Errorf("candidates are %q; want %q", got, want)
	}
	var o docindex.Outcomes
	for i := range b.Len() {
		o.Add(docindex.Outcome{
			DocID: b.At(i).DocID, URL: b.At(i).URL, Kind: docindex.Robots,
			Status: 200, Attempts: 1, At: time.Now(),
		})
	}
	if err := c.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Completed != 2 || st.Outcomes[docindex.Robots] != 2 || st.Scheduled != 1 {
		t.Errorf("the store has %+v; want 2 completed by robots, 1 scheduled", st)
	}
	b.Reset()
	if err := c.Candidates(t.Context(), 10, []string{"b.example"}, &b); err != nil || b.Len() != 0 {
		t.Errorf("candidates are %q, %v; want none", show(&b), err)
	}
}

// TestHandlerMany needs more than one buffer and gzip.
func TestHandlerMany(t *testing.T) {
	s := memory.New()
	var urls []string
	for i := range 3000 {
		urls = append(urls, fmt.Sprintf("http://h%d.example/%d", i%100, i))
	}
	put(t, s, urls...)
	zipped := make(chan bool, 1)
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpserver.Handler(s).ServeHTTP(w, r)
		zipped <- w.Header().Get("Content-Encoding") == "gzip"
	}), httpclient.Config{URL: "/docindex"})
	var b docindex.Batch
	if err := c.Candidates(t.Context(), 3000, nil, &b); err != nil || b.Len() != 3000 {
		t.Errorf("%d candidates, %v; want 3000", b.Len(), err)
	}
	if !<-zipped {
		t.Error("the answer came without gzip")
	}
}

func TestRequest(t *testing.T) {
	type request struct{ path, token, contentType, body string }
	got := make(chan request, 1)
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.Method + " " + r.URL.Path, r.Header.Get("Authorization"),
			r.Header.Get("Content-Type"), string(body)}
	}), httpclient.Config{URL: "/my/index/", Token: "secret"})

	var b docindex.Batch
	if err := c.Candidates(t.Context(), 1000, []string{"a.example", "b.example"}, &b); err != nil {
		t.Fatal(err)
	}
	want := request{"POST /my/index/candidates", "Bearer secret", "application/json",
		`{"max":1000,"reject":["a.example","b.example"]}`}
	if r := <-got; r != want {
		t.Errorf("request is %+v; want %+v", r, want)
	}
	if err := c.Candidates(t.Context(), 5, nil, &b); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.body != `{"max":5,"reject":[]}` {
		t.Errorf("body is %s; want an empty list of rejects", r.body)
	}
	var o docindex.Outcomes
	o.Add(docindex.Outcome{
		DocID: []byte("123"), URL: []byte("http://a.example/"), Kind: docindex.Done,
		Status: 200, Attempts: 1, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	})
	if err := c.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	want = request{
		"POST /my/index/outcomes", "Bearer secret", "application/x-ndjson",
		`{"doc_id":"123","url":"http://a.example/","outcome":"done","status":200,"attempts":1,"at":"2026-01-02T03:04:05Z"}` + "\n",
	}
	if r := <-got; r != want {
		t.Errorf("request is %+v; want %+v", r, want)
	}
	if err := c.Outcomes(t.Context(), &docindex.Outcomes{}); err != nil || len(got) != 0 {
		t.Errorf("no outcomes: %v, %d requests; want none", err, len(got))
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct{ name, url, want string }{
		{name: "no URL", url: "", want: "begin with http"},
		{name: "no scheme", url: "index.example/x", want: "begin with http"},
		{name: "other scheme", url: "ftp://index.example/", want: "begin with http"},
		{name: "no host", url: "http:///x", want: "begin with http"},
		{name: "query", url: "http://index.example/?a=b", want: "query"},
		{name: "not a URL", url: "http://[", want: "doc index URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := httpclient.New(httpclient.Config{URL: c.url}); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("New(%q): %v; want an error with %q", c.url, err, c.want)
			}
		})
	}
}

func TestOutcomesStatus(t *testing.T) {
	for _, c := range []struct {
		status          int
		taken, unwanted bool
	}{
		{status: 200, taken: true},
		{status: 202, taken: true},
		{status: 204, taken: true},
		{status: 301},
		{status: 400},
		{status: 401},
		{status: 404, unwanted: true},
		{status: 405, unwanted: true},
		{status: 429},
		{status: 500},
		{status: 501, unwanted: true},
		{status: 503},
	} {
		cl := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
		}), httpclient.Config{})
		var o docindex.Outcomes
		o.Add(docindex.Outcome{DocID: []byte("1")})
		err := cl.Outcomes(t.Context(), &o)
		if taken, unwanted := err == nil, errors.Is(err, docindex.ErrUnwanted); taken != c.taken ||
			unwanted != c.unwanted {
			t.Errorf("outcomes answered with %d: %v; want taken %v, unwanted %v", c.status, err, c.taken, c.unwanted)
		}
	}
}

func TestCandidatesStatus(t *testing.T) {
	for _, c := range []struct {
		status int
		want   []string // in the error
	}{
		{status: 204},
		{status: 302, want: []string{"302", "http://elsewhere.example/", "not followed"}},
		{status: 401, want: []string{"401", "docindex.token", "the body"}},
		{status: 404, want: []string{"404", "docindex.url"}},
		{status: 206, want: []string{"206"}},
		{status: 500, want: []string{"500", "the body"}},
	} {
		cl := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.status == 302 {
				w.Header().Set("Location", "http://elsewhere.example/")
			}
			w.WriteHeader(c.status)
			if c.status != 204 {
				io.WriteString(w, "the body")
			}
		}), httpclient.Config{})
		var b docindex.Batch
		err := cl.Candidates(t.Context(), 1, nil, &b)
		if (err == nil) != (c.want == nil) {
			t.Errorf("candidates answered with %d: %v", c.status, err)
			continue
		}
		for _, text := range c.want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("candidates answered with %d: %v; want %q in it", c.status, err, text)
			}
		}
	}
}

// TestRedirect makes sure that a token goes nowhere else.
func TestRedirect(t *testing.T) {
	asked := make(chan struct{}, 1)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} }))
	defer other.Close()
	c := serve(t, http.RedirectHandler(other.URL, http.StatusTemporaryRedirect), httpclient.Config{Token: "secret"})
	var b docindex.Batch
	var status *httpclient.StatusError
	if err := c.Candidates(t.Context(), 1, nil, &b); !errors.As(err, &status) || status.Status != 307 ||
		status.Text != other.URL {
		t.Errorf("candidates: %v; want a StatusError with 307 and %s", err, other.URL)
	}
	if len(asked) > 0 {
		t.Error("the redirect was followed")
	}
}

// Where a redirect leads is told without what may be secret in it.
func TestRedirectHidesSecrets(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://us:s3cret@elsewhere.example:8443/login?token=s3cret#s3cret")
		w.WriteHeader(http.StatusFound)
	}), httpclient.Config{})
	var b docindex.Batch
	err := c.Candidates(t.Context(), 1, nil, &b)
	if err == nil || !strings.Contains(err.Error(), "https://elsewhere.example:8443/login") ||
		strings.Contains(err.Error(), "s3cret") {
		t.Errorf("candidates: %v; want where it leads, without secrets", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // so that the server sees the client leave
		cancel()
		<-r.Context().Done()
	}), httpclient.Config{})
	var b docindex.Batch
	if err := c.Candidates(ctx, 1, nil, &b); !errors.Is(err, context.Canceled) {
		t.Errorf("candidates of a cancelled context: %v; want %v", err, context.Canceled)
	}
}

func TestNobodyThere(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	c := client(t, httpclient.Config{URL: srv.URL})
	var b docindex.Batch
	if err := c.Candidates(t.Context(), 1, nil, &b); err == nil || !strings.Contains(err.Error(), srv.URL) {
		t.Errorf("candidates of nobody: %v; want an error with %s", err, srv.URL)
	}
}
