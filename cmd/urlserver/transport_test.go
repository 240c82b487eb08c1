package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"urlserver/spider"
)

// pacedWeb is a web server that notes when it was asked.
type pacedWeb struct {
	*httptest.Server
	mu    sync.Mutex
	asked []time.Time
	open  int
	most  int
}

func newPacedWeb(t *testing.T) *pacedWeb {
	w := &pacedWeb{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(out, "User-agent: *\nDisallow: /secret\n")
			return
		}
		w.note(1)
		defer w.note(-1)
		if r.URL.Path == "/from" {
			http.Redirect(out, r, "/to", http.StatusFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(out, "%s %s %s", r.Method, r.URL.Path, body)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *pacedWeb) note(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open += n
	w.most = max(w.most, w.open)
	if n > 0 {
		w.asked = append(w.asked, time.Now())
	}
}

// Two programs with http.Clients over Transports keep one pace at a server, fetch a URL as often as
// they ask for it, follow redirects in turn, and learn that robots.txt forbids a page.
func TestTransportsKeepOnePace(t *testing.T) {
	web := newPacedWeb(t)
	d := startDaemon(t, write(t, "urlserver.toml", `Req_Host_Per_Sec = 20
Req_Host_Concurrent = 1
spider.listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
resolver.allow_networks = ["127.0.0.0/8"]
`))
	var clients [2]*http.Client
	for i := range clients {
		tr := &spider.Transport{Daemon: d.spiders, API: d.at}
		defer tr.Close()
		clients[i] = &http.Client{Transport: tr}
	}
	var all sync.WaitGroup
	began := time.Now()
	for i, client := range clients {
		for range 4 {
			all.Go(func() {
				text, err := textOf(client.Get(web.URL + "/page"))
				if err != nil || text != "GET /page " {
					t.Errorf("program %d: %q, %v", i, text, err)
				}
			})
		}
	}
	all.Wait()
	if text, err := textOf(clients[0].Get(web.URL + "/from")); err != nil || text != "GET /to " {
		t.Errorf("redirected: %q, %v", text, err)
	}
	if text, err := textOf(clients[1].Post(web.URL+"/form", "text/plain", strings.NewReader("x=1"))); err != nil ||
		text != "POST /form x=1" {
		t.Errorf("posted: %q, %v", text, err)
	}
	_, err := textOf(clients[0].Get(web.URL + "/secret"))
	if ended, ok := errors.AsType[*spider.EndedError](err); !ok || ended.Outcome != "robots" {
		t.Errorf("forbidden by robots.txt: %v", err)
	}
	web.mu.Lock()
	defer web.mu.Unlock()
	if len(web.asked) != 11 || web.most != 1 {
		t.Errorf("%d requests, %d at once; want 11, one at once", len(web.asked), web.most)
	}
	// Eleven gaps of 50 ms, as robots.txt is the first request. Requests may arrive late, so the time
	// begins before all of them.
	if took := web.asked[len(web.asked)-1].Sub(began); took < 550*time.Millisecond {
		t.Errorf("12 requests took %v; want at least 550ms", took)
	}
	if code, log := d.stop(); code != 0 {
		t.Errorf("exit status %d, log %s", code, log)
	}
}

// textOf reads a response's body.
func textOf(resp *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}
