package spider

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"urlserver/internal/testkit/ports"
	"urlserver/protocol"
)

// scripted is a daemon that the test speaks for. It accepts one connection after the other.
type scripted struct {
	t     *testing.T
	l     net.Listener
	conn  net.Conn
	lines *bufio.Scanner
}

// newScripted returns a daemon and a Transport to it.
func newScripted(t *testing.T) (*scripted, *Transport) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &Transport{Daemon: l.Addr().String(), Token: "s3cr3t", Crawl: "news", MaxOpen: 3}
	t.Cleanup(func() {
		tr.Close()
		l.Close()
	})
	return &scripted{t: t, l: l}, tr
}

// accept waits for the next connection, and reads its greeting.
func (d *scripted) accept() {
	d.t.Helper()
	conn, err := d.l.Accept()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(5 * time.Minute))
	d.conn, d.lines = conn, bufio.NewScanner(conn)
	for _, want := range []string{"AUTH s3cr3t", "SPIDER go-", "ROOM 3"} {
		if got := d.next(); !strings.HasPrefix(got, want) {
			d.t.Fatalf("the Transport says %q; want %q", got, want)
		}
	}
}

func (d *scripted) next() string {
	d.t.Helper()
	if !d.lines.Scan() {
		d.t.Fatal("the Transport says no more: ", d.lines.Err())
	}
	return d.lines.Text()
}

func (d *scripted) say(format string, args ...any) {
	d.t.Helper()
	if _, err := fmt.Fprintf(d.conn, format+"\n", args...); err != nil {
		d.t.Fatal(err)
	}
}

// put reads a PUT, answers it, and returns the DOC_ID that it names.
func (d *scripted) put(result protocol.PutResult) (docID string) {
	d.t.Helper()
	line := d.next()
	tag, object, ok := protocol.ParsePut([]byte(line))
	var put struct {
		URL    string
		DocID  string `json:"doc_id"`
		Unique string
		Crawl  string
	}
	if err := json.Unmarshal(object, &put); !ok || err != nil || put.DocID == "" || put.Unique != put.DocID ||
		put.Crawl != "news" || !strings.HasPrefix(put.URL, "http://") {
		d.t.Fatalf("the Transport says %q; want a PUT", line)
	}
	d.say("PUT %s %v", tag, result)
	return put.DocID
}

// got is what came of a request.
type got struct {
	status int
	body   string
	err    error
}

// get makes a GET in the background.
func get(ctx context.Context, tr *Transport, url string) <-chan got {
	result := make(chan got, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			result <- got{err: err}
			return
		}
		resp, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			result <- got{err: err}
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		result <- got{resp.StatusCode, string(body), err}
	}()
	return result
}

// A request waits until its line comes, goes to the address that the line names with the host of its
// URL, and ends at the daemon as its answer does.
func TestTransport(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintf(w, "%s of %s", r.URL.Path, r.Host)
	}))
	defer web.Close()
	port := web.Listener.Addr().(*net.TCPAddr).Port
	d, tr := newScripted(t)
	for path, want := range map[string]struct {
		status int
		line   string
	}{"/page": {200, "DONE 200"}, "/busy": {503, "DONE 503 120"}} {
		url := fmt.Sprintf("http://site.example:%d%s", port, path)
		answer := get(t.Context(), tr, url)
		if d.conn == nil {
			d.accept()
		}
		id := d.put(protocol.PutNew)
		select {
		case a := <-answer:
			t.Fatalf("answered before its turn: %+v", a)
		default:
		}
		d.say("1.2.3 %s 127.0.0.1 %s", id, url)
		if line := d.next(); line != "1.2.3 "+want.line {
			t.Errorf("%s ends as %q; want %s", path, line, want.line)
		}
		a := <-answer
		if a.err != nil || a.status != want.status ||
			a.body != fmt.Sprintf("%s of site.example:%d", path, port) {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

// A request that waits is put again on the next connection, with the same DOC_ID; one that is being
// fetched fails with its connection, and its document is not fetched when it comes again.
func TestTransportReconnects(t *testing.T) {
	began, stay := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(began)
			<-stay
		}
	}))
	defer web.Close()
	defer close(stay)
	d, tr := newScripted(t)
	slow := get(t.Context(), tr, web.URL+"/slow")
	d.accept()
	slowID := d.put(protocol.PutNew)
	waits := get(t.Context(), tr, web.URL+"/waits")
	waitsID := d.put(protocol.PutNew)
	d.say("1.0.1 %s 127.0.0.1 %s/slow", slowID, web.URL)
	<-began
	d.conn.Close()
	if a := <-slow; !errors.Is(a.err, errLost) {
		t.Errorf("a fetch whose connection ends: %+v; want %v", a, errLost)
	}
	d.accept()
	if again := d.put(protocol.PutKnown); again != waitsID {
		t.Errorf("%s is put again; want %s", again, waitsID)
	}
	d.say("1.0.2 %s 127.0.0.1 %s/slow", slowID, web.URL)
	if line := d.next(); line != "1.0.2 DONE" {
		t.Errorf("what nobody waits for ends as %q; want DONE without a status", line)
	}
	d.say("2.0.1 %s 127.0.0.1 %s/waits", waitsID, web.URL)
	if line := d.next(); line != "2.0.1 DONE 200" {
		t.Errorf("the request ends as %q", line)
	}
	if a := <-waits; a.err != nil || a.status != 200 {
		t.Errorf("the request that waited: %+v", a)
	}
}

// Requests end with an error when the daemon refuses the URL, when their context or the Transport
// ends, and when the daemon has ended the document without a fetch.
func TestTransportFails(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"state": "completed", "outcome": "robots"}`)
	}))
	defer api.Close()
	d, tr := newScripted(t)
	tr.API = api.URL
	refused := get(t.Context(), tr, "http://a.example/")
	d.accept()
	d.put(protocol.PutInvalid)
	if a := <-refused; a.err == nil || !strings.Contains(a.err.Error(), "takes no URL") {
		t.Errorf("refused: %+v", a)
	}
	scoped := get(t.Context(), tr, "http://a.example/")
	d.put(protocol.PutOutOfScope)
	if a := <-scoped; !isEnded(a.err, "out_of_scope") {
		t.Errorf("out of scope: %+v", a)
	}
	robots := get(t.Context(), tr, "http://a.example/")
	d.put(protocol.PutNew)
	if a := <-robots; !isEnded(a.err, "robots") {
		t.Errorf("ended by robots.txt: %+v", a)
	}
	ctx, cancel := context.WithCancel(t.Context())
	given := get(ctx, tr, "http://a.example/")
	id := d.put(protocol.PutNew)
	cancel()
	if a := <-given; !errors.Is(a.err, context.Canceled) {
		t.Errorf("canceled: %+v", a)
	}
	d.say("1.0.1 %s 127.0.0.1 http://a.example/", id)
	if line := d.next(); line != "1.0.1 DONE" {
		t.Errorf("a canceled request ends as %q", line)
	}
	tr.API = ""
	closed := get(t.Context(), tr, "http://a.example/")
	d.put(protocol.PutNew)
	tr.Close()
	if a := <-closed; !errors.Is(a.err, errTransportClosed) {
		t.Errorf("closed: %+v", a)
	}
}

func isEnded(err error, outcome string) bool {
	e, ok := errors.AsType[*EndedError](err)
	return ok && e.Outcome == outcome
}

// A request to a daemon that is not there says so when its context ends.
func TestTransportWithoutDaemon(t *testing.T) {
	tr := &Transport{Daemon: fmt.Sprintf("127.0.0.1:%d", ports.Free(t, 1))}
	defer tr.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	a := <-get(ctx, tr, "http://a.example/")
	if !errors.Is(a.err, context.DeadlineExceeded) ||
		!strings.Contains(a.err.Error(), "no connection to the URL server") {
		t.Errorf("%+v", a)
	}
}
