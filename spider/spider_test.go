package spider

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want []string // parts of the error; none: valid
	}{
		{name: "zero"},
		{name: "all set", cfg: Config{
			Token: "a-b", ID: "link", Index: "https://index.test:8080/base/", IndexToken: "x y",
			Concurrency: 1, Timeout: 1, StatusTimeout: time.Second, UserAgent: "a/1 (b)",
		}},
		{name: "everything wrong", cfg: Config{
			Token: "a b", ID: "a b", Index: "index.test:80", IndexToken: "a\nb", Concurrency: -1,
			Timeout: -1, StatusTimeout: 1, UserAgent: "ü",
		}, want: []string{"token", "spiderid", "index.test:80", "index token", "concurrency -1",
			"timeout -1ns", "status timeout 1ns", "user agent"}},
		{name: "index with query", cfg: Config{Index: "http://a.test/?x"}, want: []string{"index"}},
		{name: "index of no scheme", cfg: Config{Index: "/docindex"}, want: []string{"index"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.cfg.Validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("Validate() = %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q says nothing of %q", err, part)
				}
			}
		})
	}
}

// TestWholeWay: from the line to the index and the archive, over sockets.
func TestWholeWay(t *testing.T) {
	addr, port := web(t, siteHandler)
	put := make(chan string, 10)
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		put <- r.URL.Path + " " + string(body)
		io.WriteString(w, `{"new": 1, "known": 0, "invalid": 0, "errors": []}`)
	}))
	defer index.Close()
	dir := t.TempDir()
	s := New(Config{Index: index.URL, WARC: dir})
	defer s.closeIdle()
	d := newDaemon(t, s)
	for i, c := range []struct{ path, done, put string }{
		{path: "/ok", done: "200", put: fmt.Sprintf("http://a.test:%d/a.test:%d", port, port)},
		{path: "/moved", done: "301", put: fmt.Sprintf("http://a.test:%d/ok", port)},
		{path: "/busy", done: "503 30"},
		{path: "/gone", done: "0"},
	} {
		d.send(fetchLine(i, addr, fmt.Sprintf("http://a.test:%d%s", port, c.path)))
		d.want(fmt.Sprintf("%d.0.7 DONE %s", i, c.done))
		if c.put == "" {
			continue
		}
		if got, want := <-put, fmt.Sprintf("/docindex/urls {\"url\":%q,\"via\":\"doc-%d\"}\n",
			c.put, i); got != want {
			t.Errorf("%s: put %q; want %q", c.path, got, want)
		}
	}
	d.conn.Close()
	<-d.ended
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	paths := files(t, dir, "*.warc.gz")
	if len(paths) != 1 {
		t.Fatalf("archive is %v; want one file", paths)
	}
	if n := len(readWARC(t, paths[0])); n != 1+2*3 {
		t.Errorf("%s has %d records; want 7", filepath.Base(paths[0]), n)
	}
	if got := s.Stats(); got.Fetched != 3 || got.Failed != 1 || got.LinksTaken != 2 || len(put) != 0 {
		t.Errorf("stats are %+v, %d requests too many", got, len(put))
	}
}
