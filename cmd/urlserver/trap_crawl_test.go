package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// trapSite is a site of some levels: at each, 60 pages of content behind 400 trap URLs. A page of a
// trap links to five others.
type trapSite struct {
	mu    sync.Mutex // guards asked
	asked []string
}

func (s *trapSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.RequestURI())
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	level := 0
	if n, _ := fmt.Sscanf(r.URL.Path, "/docs/part-%d/", &level); n == 0 && r.URL.Path != "/" {
		for i := range 5 {
			fmt.Fprintf(w, "<a href=%q>x</a>\n", fmt.Sprintf("%s-%d", r.URL.Path, i))
		}
		return
	}
	for i := range 400 {
		fmt.Fprintf(w, "<a href=\"/more/%d/item-%d\">x</a>\n", level, i)
	}
	for i := range 60 {
		fmt.Fprintf(w, "<a href=\"/docs/part-%d/page-%d.html\">x</a>\n", level+1, i)
	}
}

// A daemon and a spider crawl a site with traps: nine of ten requests are for pages of content.
func TestTraps(t *testing.T) {
	site := &trapSite{}
	srv := httptest.NewServer(site)
	defer srv.Close()
	d := startDaemon(t, settings(t, "[[rules]]\nhosts = [\"127.0.0.1\"]\nper_sec = 50.0\n"))
	referenceSpider(t, d)
	command(t, srv.URL+"/\n", "put", "--at", d.at, "--same-site", "-").want(t, 0, `"new":1`, "")
	const requests = 300
	var asked []string
	for late := time.Now().Add(patience); len(asked) < requests; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d requests", len(asked))
		}
		site.mu.Lock()
		asked = site.asked
		site.mu.Unlock()
	}
	content := 0
	for _, path := range asked[:requests] {
		if strings.HasPrefix(path, "/docs/") {
			content++
		}
	}
	if t.Logf("%d of %d requests were for content", content, requests); content < requests*9/10 {
		t.Errorf("%d of %d requests were for content; want nine of ten", content, requests)
	}
}
