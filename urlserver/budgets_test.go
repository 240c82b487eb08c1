package urlserver

import (
	"bytes"
	"container/heap"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
	"urlserver/protocol"
	"urlserver/urlserver/engine"
)

// virtualCrawl is an engine with the index in memory, in virtual time. A spider fetches what the engine
// sends, and puts the links of the pages.
type virtualCrawl struct {
	t       *testing.T
	e       *engine.Engine
	store   docindex.Store
	spider  uint32
	start   time.Time
	todo    todos
	events  int
	address func(host string) string  // hosts for which it is the same have one address
	links   func(url string) []string // of a page
	pages   map[string]int            // that were fetched, by the host's name without its first label
}

// todo is an event of a virtualCrawl.
type todo struct {
	at time.Time
	no int // events of one moment keep their order
	do func()
}

type todos []todo

func (q todos) Len() int { return len(q) }
func (q todos) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].no < q[j].no
}
func (q todos) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *todos) Push(x any)   { *q = append(*q, x.(todo)) }
func (q *todos) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func newVirtualCrawl(t *testing.T, change func(*configs.Config)) *virtualCrawl {
	cfg := configs.Default()
	cfg.Robots.Enabled, cfg.ReqHostPerSec, cfg.QueueCount = false, 1, 16
	change(&cfg)
	c := &virtualCrawl{t: t, store: scoped.New(memory.New()), start: time.Now(),
		address: func(host string) string { return host }, pages: map[string]int{}}
	c.e = engine.New(cfg, engine.Options{
		Exact:     true,
		CachedFor: func([]byte) time.Duration { return 24 * time.Hour },
		Cached: func(host []byte) (netip.Addr, error, bool) {
			h := fnv.New32()
			h.Write([]byte(c.address(string(host))))
			n := h.Sum32()
			return netip.AddrFrom4([4]byte{11, byte(n >> 16), byte(n >> 8), byte(n)}), nil, true
		},
	})
	c.store.SetSlotGap(time.Duration(float64(time.Second) / cfg.ReqHostPerSec))
	c.store.SetBudget(cfg.Crawl.Budget)
	c.store.SetAhead(ahead(&cfg))
	c.store.OnWake(c.e.WakeIndex)
	c.e.Advance(0, c.start)
	c.spider = c.e.Connected("spider")
	return c
}

func (c *virtualCrawl) after(d time.Duration, do func()) {
	c.events++
	heap.Push(&c.todo, todo{time.Now().Add(d), c.events, do})
}

// put puts links of a page; "": they are not links.
func (c *virtualCrawl) put(page string, urls ...string) {
	var p docindex.Puts
	for _, url := range urls {
		if err := p.Add(docindex.Put{URL: []byte(url), Via: []byte(page)}); err != nil {
			c.t.Fatal(err)
		}
	}
	if _, err := c.store.Put(c.t.Context(), &p); err != nil {
		c.t.Fatal(err)
	}
}

// run crawls for some time.
func (c *virtualCrawl) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for len(c.todo) > 0 && !c.todo[0].at.After(time.Now()) {
			heap.Pop(&c.todo).(todo).do()
		}
		c.e.Advance(time.Since(c.start), time.Now())
		wait := c.e.Step(nil)
		c.flush()
		if wait < 0 || len(c.todo) > 0 && time.Until(c.todo[0].at) < wait {
			wait = time.Until(c.todo[0].at)
		}
		time.Sleep(wait)
	}
}

// flush carries out what the engine wants, as the daemon does.
func (c *virtualCrawl) flush() {
	out := &c.e.Out
	if err := c.store.Outcomes(c.t.Context(), &out.Outcomes); err != nil {
		c.t.Fatal(err)
	}
	if err := c.store.Return(c.t.Context(), &out.Returns); err != nil {
		c.t.Fatal(err)
	}
	if a := out.Ask; a != nil {
		p := &engine.Prepared{}
		if err := c.store.Candidates(c.t.Context(), a.Max, a.Reject, &p.Batch); err != nil {
			c.t.Fatal(err)
		}
		p.Prepare()
		c.after(5*time.Millisecond, func() { c.e.Answered(p) })
	}
	lines := c.e.Output(c.spider, nil)
	if *out = (engine.Out{}); lines == nil {
		return
	}
	c.e.Written(c.spider)
	for line := range bytes.Lines(lines) {
		f, err := protocol.ParseFetch(bytes.TrimSpace(line))
		if err != nil {
			c.t.Fatal(err)
		}
		trans, _ := protocol.ParseTrans(f.Trans)
		id, url := string(f.DocID), string(f.URL)
		c.after(300*time.Millisecond, func() { c.fetched(trans, id, url) })
	}
}

func (c *virtualCrawl) fetched(trans protocol.Trans, id, url string) {
	host := string(docindex.HostOf([]byte(url)))
	c.pages[host[strings.IndexByte(host, '.')+1:]]++
	c.put(id, c.links(url)...)
	c.e.Lines(c.spider, []engine.Line{{Status: protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200,
		HasStatus: true}}})
}

const honestSites = 50

// honest returns the link of a page of an honest site. It is to one of two kinds of pages.
func (c *virtualCrawl) honest(url string) string {
	c.events++
	return fmt.Sprintf("http://%s/%c/%d", docindex.HostOf([]byte(url)), "ab"[c.events%2], c.events)
}

// honestPages runs a crawl for some time and returns how many pages of honest sites it brings. trap
// returns more links of a page; nil: there is no trap.
func honestPages(t *testing.T, d time.Duration, trap func(c *virtualCrawl, url string) []string,
	change func(*configs.Config)) (pages int) {
	synctest.Test(t, func(t *testing.T) {
		c := newVirtualCrawl(t, change)
		c.address = func(host string) string {
			if strings.HasSuffix(host, ".wild.example") {
				return "wild.example"
			}
			return host
		}
		c.links = func(url string) (urls []string) {
			if strings.Contains(url, ".site-") {
				urls = []string{c.honest(url)}
			}
			if trap != nil {
				urls = append(urls, trap(c, url)...)
			}
			return urls
		}
		for range 3 {
			for i := range honestSites {
				c.put("", c.honest(fmt.Sprintf("http://www.site-%d.example/", i)))
			}
		}
		c.run(d)
		all := 0
		for domain, n := range c.pages {
			if all += n; strings.HasPrefix(domain, "site-") {
				pages += n
			}
		}
		t.Logf("%d pages, %d of honest sites", all, pages)
	})
	return pages
}

// A domain that generates host names does not fill the slots or leftover while other sites have links
// that are due: these are fetched as they are without it.
func TestGeneratedNames(t *testing.T) {
	for _, zone := range []string{"trap", "wild"} { // each name has an address of its own, or all have one
		t.Run(zone, func(t *testing.T) {
			change := func(c *configs.Config) { c.Crawl.Budget, c.Leftover.Max = 10, 500 }
			alone := honestPages(t, 5*time.Minute, nil, change)
			beside := honestPages(t, 5*time.Minute, func(c *virtualCrawl, _ string) (urls []string) {
				for range 5 {
					c.events++
					urls = append(urls, fmt.Sprintf("http://n%d.%s.example/", c.events, zone))
				}
				return urls
			}, change)
			if beside < alone*95/100 {
				t.Errorf("%d pages of honest sites beside a domain of generated names; want 95 %% of %d",
					beside, alone)
			}
		})
	}
}

// A tarpit, each page of which links to others of its own, beside it or one folder deeper, gets at most
// one in a hundred requests beside 50 sites of the same pace, although the slots have room for all.
func TestTarpitBesideHonestSites(t *testing.T) {
	for _, form := range []string{"%s-%d", "%s/%d"} {
		synctest.Test(t, func(t *testing.T) {
			c := newVirtualCrawl(t, func(c *configs.Config) { c.ReqHostPerSec, c.QueueCount = 0.25, 4096 })
			c.links = func(url string) (urls []string) {
				if strings.Contains(url, ".site-") {
					return []string{c.honest(url), c.honest(url)}
				}
				for i := range 5 {
					urls = append(urls, fmt.Sprintf(form, url, i))
				}
				return urls
			}
			for range 10 {
				for i := range honestSites {
					c.put("", c.honest(fmt.Sprintf("http://www.site-%d.example/", i)))
				}
			}
			c.put("", "http://www.pit.example/a")
			c.run(time.Hour)
			all := 0
			for _, n := range c.pages {
				all += n
			}
			pit := c.pages["pit.example"]
			t.Logf("%d of %d requests are for the tarpit: %.2f %%", pit, all, 100*float64(pit)/float64(all))
			if pit*100 > all || pit == 0 {
				t.Errorf("%d of %d requests are for the tarpit; want 1 %% at most", pit, all)
			}
		})
	}
}

// Sites whose pages bring nothing but their own shape have all the pages that their pace allows, where
// they are half of all sites: a budget compares what domains have with the average.
func TestSitesOfOneShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newVirtualCrawl(t, func(c *configs.Config) { c.QueueCount, c.Crawl.Budget = 4096, 50 })
		link := func(url string) string {
			var site int
			if fmt.Sscanf(url, "http://www.site-%d.", &site); site%2 == 0 {
				return c.honest(url)
			}
			c.events++
			return fmt.Sprintf("http://%s/wiki/%d", docindex.HostOf([]byte(url)), c.events)
		}
		c.links = func(url string) []string { return []string{link(url), link(url)} }
		for range 10 {
			for i := range honestSites {
				c.put("", link(fmt.Sprintf("http://www.site-%d.example/", i)))
			}
		}
		c.run(10 * time.Minute)
		for domain, n := range c.pages {
			if n < 590 {
				t.Errorf("%s has %d pages; want 600, one a second", domain, n)
			}
		}
	})
}
