package robots

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A note says for its agent what the file said: rules, Crawl-delay, sitemaps and the time.
func TestNote(t *testing.T) {
	p := Policy{Agent: "a/1", TTL: time.Hour, MaxCrawlDelay: time.Minute}
	at := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		status     int
		body, path string
	}{
		{200, "user-agent: a\ndisallow: /x*y$\nallow: /x\ndisallow: /\ncrawl-delay: 4.1\nsitemap: http://s.test/1\n" +
			"user-agent: *\ndisallow: /x\n", "/x1y"},
		{200, "user-agent: *\ndisallow: /%2A*%24$\n", "/*b$"},
		{200, "sitemap: http://s.test/2", "/"},
		{200, "", "/a"},
		{404, "not found", "/a"},
	} {
		entry := p.Settle(Entry{}, 0, Response{Status: c.status, Body: []byte(c.body)})
		note, ok := entry.AppendNote(nil, p.Agent, at)
		if !ok {
			t.Fatalf("no note of %d %q", c.status, c.body)
		}
		resp, when, ok := ReadNote(note, p.Agent, [][]byte{[]byte(c.path)})
		again := p.Settle(Entry{}, 0, resp)
		want, wantBy := entry.Rules().Match([]byte(c.path))
		got, by := again.Rules().Match([]byte(c.path))
		if !ok || !when.Equal(at) || got != want || by != wantBy || again.State() != entry.State() ||
			again.CrawlDelay() != entry.CrawlDelay() || len(again.Sitemaps()) != len(entry.Sitemaps()) {
			t.Errorf("%d %q: read again it is %+v at %v", c.status, c.body, again, when)
		}
		if v := resp.Verdicts(); c.status == 200 && (len(v) != 1 || v[0] != want) {
			t.Errorf("%q: verdicts %v; want %v", c.body, v, want)
		}
		if _, _, ok := ReadNote(note, "b/1", nil); ok {
			t.Error("it is read for another agent")
		}
	}
	failed := p.Settle(Entry{}, 0, Response{Status: 500})
	if _, ok := failed.AppendNote(nil, p.Agent, at); ok {
		t.Error("there is a note of a failure")
	}
}

// A note that was damaged is read, or not, without a panic.
func TestDamagedNote(t *testing.T) {
	entry := Policy{}.Settle(Entry{}, 0, Response{Status: 200, Body: []byte("user-agent: *\ndisallow: /x\n")})
	note, _ := entry.AppendNote(nil, "agent", time.Unix(1, 0))
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		damaged := append([]byte{}, note[:r.IntN(len(note)+1)]...)
		for range r.IntN(3) {
			if len(damaged) > 0 {
				damaged[r.IntN(len(damaged))] = byte(r.Uint32())
			}
		}
		ReadNote(damaged, "agent", nil)
	}
}
