package spider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/protocol"
)

var testAddr = netip.MustParseAddr("192.0.2.1")

// siteHandler answers for several hosts.
func siteHandler(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ok":
		fmt.Fprintf(w, "<a href=/%s>", r.Host)
	case "/busy":
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/moved":
		http.Redirect(w, r, "/ok", http.StatusMovedPermanently)
	case "/gone":
		panic(http.ErrAbortHandler)
	default:
		http.NotFound(w, r)
	}
}

func TestConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		pipeWeb(t, s, siteHandler)
		d := newDaemon(t, s)
		for _, c := range []struct{ name, send, want string }{
			{name: "page", send: "1.0.7 a 192.0.2.1 http://a.test/ok\n", want: "1.0.7 DONE 200"},
			{name: "CR LF", send: "1.0.8 a 192.0.2.1 http://a.test/ok\r\n", want: "1.0.8 DONE 200"},
			{name: "the TRANS_ID is opaque", send: "any/word~ a 2001:db8::1 http://b.test/ok\n",
				want: "any/word~ DONE 200"},
			{name: "Retry-After", send: "1.0.9 b 192.0.2.1 http://a.test/busy\n", want: "1.0.9 DONE 503 30"},
			{name: "redirect", send: "1.0.10 c 192.0.2.1 http://a.test/moved\n", want: "1.0.10 DONE 301"},
			{name: "no such page", send: "1.0.11 d 192.0.2.1 http://a.test/x\n", want: "1.0.11 DONE 404"},
			{name: "no answer", send: "1.0.12 e 192.0.2.1 http://a.test/gone\n", want: "1.0.12 DONE 0"},
			{name: "no URL to fetch", send: "1.0.13 f 192.0.2.1 ftp://a.test/\n", want: "1.0.13 DONE 0"},
			{name: "bad lines between",
				send: "\nhello\n1.0.14 g a.test http://a.test/\n1.0.15 h 192.0.2.1 http://a.test/ok\n",
				want: "1.0.15 DONE 200"},
		} {
			d.send(c.send)
			if got := d.receive(); got != c.want {
				t.Errorf("%s: spider says %q; want %q", c.name, got, c.want)
			}
		}
		synctest.Wait() // the last document's goroutine has ended
		got := s.Stats()
		want := Stats{Fetched: 7, Failed: 2, BadLines: 3, Links: 5, Bytes: got.Bytes}
		if got != want {
			t.Errorf("stats are %+v; want %+v", got, want)
		}
	})
}

// A spider that puts links says of a page that it fetched before whether it has changed.
func TestChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Index: onConnection})
		pages := map[string]string{}
		pipeWeb(t, s, func(w http.ResponseWriter, r *http.Request) {
			text, found := pages[r.URL.Path]
			if !found {
				w.WriteHeader(http.StatusNotFound)
			}
			fmt.Fprint(w, text)
		})
		d := newDaemon(t, s)
		for i, c := range []struct{ path, text, want string }{
			{path: "/a", text: "one", want: "DONE 200"},
			{path: "/b", text: "one", want: "DONE 200"},
			{path: "/a", text: "one", want: "DONE 200 changed=0"},
			{path: "/a", text: "two", want: "DONE 200 changed=1"},
			{path: "/a", text: "two", want: "DONE 200 changed=0"},
			{path: "/c", text: "", want: "DONE 200"},
			{path: "/c", text: "", want: "DONE 200 changed=0"},
			{path: "/a", want: "DONE 404"},
			{path: "/a", text: "two", want: "DONE 200 changed=0"},
		} {
			if pages[c.path] = c.text; strings.HasSuffix(c.want, "404") {
				delete(pages, c.path)
			}
			d.send(fetchLine(i, testAddr, "http://a.test"+c.path))
			if got := d.receive(); !strings.HasSuffix(got, " "+c.want) {
				t.Errorf("%d. of %s: spider says %q; want %q", i, c.path, got, c.want)
			}
		}
	})
}

// WORKING is sent exactly every half of the timeout, and not after DONE.
func TestWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Timeout: time.Hour, StatusTimeout: 120 * time.Second})
		pipeWeb(t, s, func(w http.ResponseWriter, r *http.Request) { time.Sleep(150 * time.Second) })
		d := newDaemon(t, s)
		start := time.Now()
		d.send("1.0.7 a 192.0.2.1 http://a.test/\n")
		for _, c := range []struct {
			want  string
			after time.Duration
		}{
			{want: "1.0.7 WORKING", after: 60 * time.Second},
			{want: "1.0.7 WORKING", after: 120 * time.Second},
			{want: "1.0.7 DONE 200", after: 150 * time.Second},
		} {
			d.want(c.want)
			if got := time.Since(start); got != c.after {
				t.Errorf("%s after %v; want %v", c.want, got, c.after)
			}
		}
		time.Sleep(time.Hour)
		if got := s.Stats(); got.Working != 2 || got.InFlight != 0 {
			t.Errorf("an hour later %d WORKING, %d in flight; want 2, 0", got.Working, got.InFlight)
		}
	})
}

// A slow document delays no other: all are fetched at once, when the daemon sends them.
func TestManyAtOnce(t *testing.T) {
	const documents = 500
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		pipeWeb(t, s, func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Second) })
		d := newDaemon(t, s)
		start := time.Now()
		for i := range documents {
			d.send(fetchLine(i, testAddr, fmt.Sprintf("http://h%d.test/", i)))
		}
		seen := make(map[string]int)
		for range documents {
			seen[d.receive()]++
		}
		for i := range documents {
			if line := fmt.Sprintf("%d.0.7 DONE 200", i); seen[line] != 1 {
				t.Errorf("%q came %d times; want once", line, seen[line])
			}
		}
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("took %v; want 20s", took)
		}
	})
}

// At the limit the spider stops reading lines.
func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Concurrency: 2})
		pipeWeb(t, s, func(http.ResponseWriter, *http.Request) { time.Sleep(10 * time.Second) })
		d := newDaemon(t, s)
		start := time.Now()
		go func() {
			for i := range 5 {
				io.WriteString(d.conn, fetchLine(i, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}),
					fmt.Sprintf("http://h%d.test/", i)))
			}
		}()
		for i := range 5 {
			if d.receive() == "" {
				t.Fatal("the conversation ended")
			}
			if got, want := time.Since(start), time.Duration(i/2+1)*10*time.Second; got != want {
				t.Errorf("DONE %d after %v; want %v", i, got, want)
			}
			if n := s.Stats().InFlight; n > 2 {
				t.Errorf("%d in flight; want 2 at most", n)
			}
		}
	})
}

// However the connection ends, its fetches are cancelled, and converse waits for them.
func TestConversationEnds(t *testing.T) {
	page := "1.0.7 a 192.0.2.1 http://a.test/\n"
	for _, c := range []struct {
		name string
		send string
		end  func(d *daemon)
		want error // nil: any
	}{
		{name: "between lines", send: page, end: hangUp, want: io.EOF},
		{name: "within a line", send: page + "1.0.8 b 192.0.2.1 http://a.te", end: hangUp,
			want: io.ErrUnexpectedEOF},
		{name: "too long a line", send: page, want: protocol.ErrLineTooLong, end: func(d *daemon) {
			io.WriteString(d.conn, strings.Repeat("x", protocol.MaxLine+1))
		}},
		{name: "bad lines", send: page, end: func(d *daemon) {
			io.WriteString(d.conn, strings.Repeat("?\n", maxBadLines))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Config{Timeout: time.Hour})
				broken := make(chan struct{})
				pipeWeb(t, s, func(_ http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
					close(broken)
				})
				d := newDaemon(t, s)
				d.send(c.send)
				synctest.Wait()
				if got := s.Stats().InFlight; got != 1 {
					t.Fatalf("%d in flight; want 1", got)
				}
				start := time.Now()
				c.end(d)
				if err := <-d.ended; err == nil || !errors.Is(err, c.want) && c.want != nil {
					t.Errorf("ended with %v; want %v", err, c.want)
				}
				<-broken
				if got := s.Stats().InFlight; got != 0 || time.Since(start) != 0 {
					t.Errorf("%d in flight after %v; want 0 at once", got, time.Since(start))
				}
				if n := len(s.busy); n != 0 {
					t.Errorf("%d places of %d not given back", n, cap(s.busy))
				}
			})
		})
	}
}

func hangUp(d *daemon) { d.conn.Close() }

// The connection to a daemon that reads nothing ends after half the status timeout. Lines for it do
// not accumulate.
func TestDaemonThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{StatusTimeout: 120 * time.Second})
		pipeWeb(t, s, siteHandler)
		d := newDaemon(t, s)
		start := time.Now()
		d.send("1.0.7 a 192.0.2.1 http://a.test/ok\n")
		err := <-d.ended
		if got := time.Since(start); err == nil || got != 60*time.Second {
			t.Errorf("ended after %v with %v; want an error after 60s", got, err)
		}
	})
}

// DONE waits for the index. Until then the document is WORKING.
func TestDoneAfterLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Index: "http://index.test", StatusTimeout: 120 * time.Second})
		pipeWeb(t, s, siteHandler)
		down := 100 * time.Second
		start := time.Now()
		var got string
		indexWith(s, func(r *http.Request, body string) (int, string) {
			if time.Since(start) < down {
				return 503, ""
			}
			got += body
			return 200, `{"new": 1}`
		})
		d := newDaemon(t, s)
		d.send("1.0.7 a 192.0.2.1 http://a.test/ok\n")
		d.want("1.0.7 WORKING")
		if time.Since(start) != 60*time.Second {
			t.Errorf("WORKING after %v; want 60s", time.Since(start))
		}
		d.want("1.0.7 DONE 200")
		if after := time.Since(start); after < down || after > down+maxBackoff {
			t.Errorf("DONE after %v; want %v and at most a pause", after, down)
		}
		if want := `{"url":"http://a.test/a.test","via":"a"}` + "\n"; got != want {
			t.Errorf("index has %q; want %q", got, want)
		}
	})
}

// Links that a connection was putting when it broke are put by the next one.
func TestConnectionBreaksWhileIndexIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Index: "http://index.test"})
		pipeWeb(t, s, siteHandler)
		var up atomic.Bool
		var got string
		indexWith(s, func(_ *http.Request, body string) (int, string) {
			if !up.Load() {
				return 500, ""
			}
			got += body
			return 200, ""
		})
		first := newDaemon(t, s)
		first.send("1.0.7 a 192.0.2.1 http://a.test/ok\n")
		time.Sleep(time.Second)
		first.conn.Close()
		<-first.ended
		up.Store(true)
		second := newDaemon(t, s)
		second.send("1.0.8 b 192.0.2.1 http://b.test/ok\n")
		second.want("1.0.8 DONE 200")
		if want := `{"url":"http://a.test/a.test","via":"a"}` + "\n" +
			`{"url":"http://b.test/b.test","via":"b"}` + "\n"; got != want {
			t.Errorf("index has %q; want %q", got, want)
		}
	})
}

func TestConverseEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Timeout: time.Hour})
		pipeWeb(t, s, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ours, theirs := newPair()
		defer ours.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.converse(ctx, theirs)
			ended <- err
		}()
		io.WriteString(ours, "1.0.7 a 192.0.2.1 http://a.test/ok\n")
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("converse = %v; want %v", err, context.Canceled)
		}
		if n, err := ours.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read %d bytes, %v; want none: nothing is DONE", n, err)
		}
	})
}
