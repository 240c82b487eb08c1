package scoped_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/memory"
	"urlserver/docindex/redis"
	"urlserver/docindex/scoped"
	"urlserver/internal/testkit/redistest"
)

const (
	trapLevels  = 6   // of content
	trapContent = 60  // pages of content at a level
	trapURLs    = 400 // trap URLs that come before them
)

// trapWeb is a site with traps: the links of a page. Each page of content links to the 400 trap
// URLs of its level, and then to the 60 pages of the next one. A page of a trap links to five
// others.
type trapWeb struct {
	trap  func(level, n int) string
	leafs bool // the traps' pages have no links
}

const trapSite = "http://site.test"

func (w *trapWeb) links(url string) (all []string) {
	url = strings.TrimPrefix(url, trapSite)
	var level, n int
	if _, err := fmt.Sscanf(url, "/docs/part-%d/page-%d.html", &level, &n); err != nil && url != "/" {
		if w.leafs {
			return nil
		}
		for i := range 5 {
			all = append(all, fmt.Sprintf("%s-%d", url, i))
		}
		return all
	}
	for i := range trapURLs {
		all = append(all, w.trap(level, i))
	}
	for i := range trapContent {
		if level < trapLevels {
			all = append(all, fmt.Sprintf("/docs/part-%d/page-%d.html", level+1, i))
		}
	}
	return all
}

// crawl fetches a page at a time and puts its links. It returns how many of the requests were pages
// of content, and how many pages of content there were in all the requests until none was left.
func (w *trapWeb) crawl(t *testing.T, s docindex.Store, requests, most int) (content, all int) {
	put(t, s, docindex.Put{URL: []byte(trapSite + "/")})
	for n := 0; n < most && all < trapLevels*trapContent; n++ {
		var b docindex.Batch
		var p docindex.Puts
		var o docindex.Outcomes
		if err := s.Candidates(t.Context(), 1, nil, &b); err != nil || b.Len() != 1 {
			t.Fatalf("request %d: %d documents, %v", n, b.Len(), err)
		}
		c := b.At(0)
		if strings.Contains(string(c.URL), "/docs/") {
			all++
		}
		if n < requests {
			content = all
		}
		for _, link := range w.links(string(c.URL)) {
			if err := p.Add(docindex.Put{URL: []byte(trapSite + link), Via: c.DocID}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Put(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		o.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL, Status: 200, Attempts: 1})
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
	}
	return content, all
}

// A site has pages of content behind many trap URLs. Nearly all requests are for pages of content,
// and none of these is lost.
func TestTraps(t *testing.T) {
	for _, web := range []struct {
		name string
		trapWeb
	}{
		{"one trap", trapWeb{trap: func(level, n int) string { return fmt.Sprintf("/more/%d/item-%d", level, n) }}},
		{"a trap at each level", trapWeb{trap: func(level, n int) string {
			return fmt.Sprintf("/%c/item-%d", 'a'+level, n)
		}}},
		{"by query", trapWeb{trap: func(level, n int) string {
			return fmt.Sprintf("/list?sort=%d&level=%d", n, level)
		}}},
		{"many query keys", trapWeb{trap: func(level, n int) string {
			return fmt.Sprintf("/list?k%d=1&%c=%d", n%20, 'a'+level, n)
		}}},
		{"calendar", trapWeb{trap: func(level, n int) string {
			return fmt.Sprintf("/events/20%02d-%02d-%02d?x=", level+10, n%12+1, n/12%28+1)
		}}},
		{"without links", trapWeb{leafs: true, trap: func(level, n int) string {
			return fmt.Sprintf("/more/%d/item-%d", level, n)
		}}},
	} {
		t.Run(web.name, func(t *testing.T) {
			onEach(t, web.name == "one trap", func(t *testing.T, s docindex.Store) {
				content, all := web.crawl(t, s, 300, 20_000)
				if t.Logf("%d of 300 requests were for content", content); content < 270 {
					t.Errorf("%d of 300 requests were for content; want 270", content)
				}
				if all != trapLevels*trapContent {
					t.Errorf("%d pages of content were fetched; want all %d", all, trapLevels*trapContent)
				}
			})
		})
	}
}

// onEach runs a test on the stores in which shapes take turns; on Redis, which takes long, if it is asked
// for.
func onEach(t *testing.T, redisToo bool, test func(t *testing.T, s docindex.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, scoped.New(memory.New())) })
	t.Run("disk", func(t *testing.T) {
		s, err := disk.Open(disk.Config{Path: t.TempDir(), Sync: disk.None})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		test(t, scoped.New(s))
	})
	if !redisToo {
		return
	}
	t.Run("redis", func(t *testing.T) {
		addr := redistest.Start(t).Addr()
		s := redis.New(redis.Config{Addrs: []string{addr}, Lease: time.Minute, Janitor: time.Minute})
		t.Cleanup(func() { s.Close() })
		test(t, scoped.New(s))
	})
}
