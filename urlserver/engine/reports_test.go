package engine

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
)

// teller is an engine whose reservation counts, and grants all.
type teller struct {
	e    *Engine
	now  time.Duration
	told map[string]HeldCount
	most int // crawls told of at once
}

func newTeller() *teller {
	cfg := configs.Default()
	cfg.ReqHostPerSec, cfg.Robots.Enabled = 0.001, false
	w := &teller{now: 10 * second, told: map[string]HeldCount{}}
	w.e = New(cfg, Options{Lease: lease, Counted: true, Cached: func(host []byte) (netip.Addr, error, bool) {
		return netip.AddrFrom4([4]byte{192, 0, 2, host[0]}), nil, true
	}})
	w.e.Connected("spider")
	return w
}

func (w *teller) offer(id, host, crawl string) {
	p := &Prepared{}
	p.Batch.AddFor([]byte(id), []byte("http://"+host+"/"+id), 0, "", crawl)
	p.Prepare()
	w.e.Answered(p)
	w.step()
}

func (w *teller) step() {
	w.e.Advance(w.now, time.Time{})
	w.e.Step(nil)
	c := w.e.Out.Leases
	if w.e.Out.Leases = nil; c == nil {
		return
	}
	crawls := 0
	for _, h := range c.Reports {
		w.told[h.Host] = h
		crawls += len(h.Crawls)
	}
	w.most = max(w.most, crawls)
	for i := range c.Binds {
		c.Binds[i].Group = c.Binds[i].Addr.String()
	}
	for i := range c.Acquires {
		c.Acquires[i].Token, c.Acquires[i].Answer = 1, Granted
	}
	for i := range c.Extends {
		c.Extends[i].Answer = Granted
	}
	w.e.LeasesAnswered(c)
}

// pass lets so much time pass that all that has changed is told.
func (w *teller) pass() {
	for range 20 {
		w.now += lease / 10
		w.step()
	}
}

func (w *teller) says(t *testing.T, host, want string) {
	t.Helper()
	h := w.told[host]
	slices.SortFunc(h.Crawls, func(a, b CrawlPart) int { return cmp.Compare(a.Crawl, b.Crawl) })
	if got := strings.Trim(fmt.Sprint(h.Documents, h.Crawls), "[]"); got != want {
		t.Errorf("told of %s is %s; want %s", host, got, want)
	}
}

// TestCrawlsAreTold of hosts, when they are reserved, when they change, and when they are gone.
func TestCrawlsAreTold(t *testing.T) {
	const a, b = "192.0.2.97", "192.0.2.98" // by the first letters of host names
	w := newTeller()
	for i, crawl := range []string{"one", "", "two", "one"} {
		w.offer(fmt.Sprint(i), "a.example", crawl)
	}
	w.offer("b", "b.example", "")
	w.pass()
	w.says(t, a, "4 [{one 2} {two 1}")
	w.says(t, b, "1 ")
	w.offer("4", "aa.example", "three")
	w.offer("5", "b.example", "one")
	w.pass()
	w.says(t, a, "5 [{one 2} {three 1} {two 1}")
	w.says(t, b, "2 [{one 1}")
	for _, id := range []string{"0", "1", "2", "3", "4", "5", "b"} { // none may be sent so soon
		if doc := w.e.slots.FindDoc([]byte(id)); w.e.slots.Dequeue(doc) {
			w.e.slots.End(w.now, doc)
		}
	}
	w.pass()
	w.says(t, a, "0 ")
	w.says(t, b, "0 ")
}

// TestManyCrawlsAreToldInParts: no Claims tells of more crawls than it has room for, and in the end
// all of them are told of.
func TestManyCrawlsAreToldInParts(t *testing.T) {
	const groups = 12
	w := newTeller()
	p := &Prepared{}
	for g := range groups {
		for i := range groupCrawls + 5 {
			p.Batch.AddFor(fmt.Append(nil, g, ".", i), fmt.Appendf(nil, "http://%c.example/%d", 'a'+g, i),
				0, "", fmt.Sprint("crawl", i))
		}
	}
	p.Prepare()
	w.e.Answered(p)
	for w.e.intake.batch != nil {
		w.step()
	}
	for range 20 {
		w.pass()
	}
	for g := range groups {
		h := w.told[fmt.Sprintf("192.0.2.%d", 'a'+g)]
		if h.Documents != groupCrawls+5 || len(h.Crawls) != groupCrawls {
			t.Errorf("told of group %d: %d documents of %d crawls; want %d of %d", g, h.Documents,
				len(h.Crawls), groupCrawls+5, groupCrawls)
		}
	}
	if w.most > crawlBatch || len(w.e.leases.reporter.truncated) > 0 {
		t.Errorf("%d crawls are told of at once, and %d groups are to be told again; want %d at most, "+
			"and none", w.most, len(w.e.leases.reporter.truncated), crawlBatch)
	}
}
