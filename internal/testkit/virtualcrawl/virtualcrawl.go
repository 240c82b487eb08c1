// Package virtualcrawl crawls webs that tests make up: an engine with an embedded index, in
// virtual time.
package virtualcrawl

import (
	"bytes"
	"container/heap"
	"hash/fnv"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/scoped"
	"urlserver/protocol"
	"urlserver/urlserver/engine"
)

// Crawl is an engine with an index, in virtual time. A spider fetches what the engine sends, and
// puts the links of the pages.
type Crawl struct {
	Address func(host string) string  // hosts for which it is the same have one address
	Links   func(url string) []string // of a page
	Pages   map[string]int            // that were fetched, by the host's name without its first label

	t      *testing.T
	e      *engine.Engine
	store  docindex.Store
	spider uint32
	start  time.Time
	todo   todos
	events int
}

// todo is an event.
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

// Rig is what a crawl is made of. Tests use it in a synctest bubble.
type Rig struct {
	Open  func(t *testing.T) docindex.Store
	Ahead func(*configs.Config) docindex.Ahead // what the slots have at most
}

// New returns a crawl with 16 slots and a request a second to each host, unless change says
// otherwise.
func (r Rig) New(t *testing.T, change func(*configs.Config)) *Crawl {
	cfg := configs.Default()
	cfg.Robots.Enabled, cfg.ReqHostPerSec, cfg.QueueCount = false, 1, 16
	change(&cfg)
	c := &Crawl{t: t, store: scoped.New(r.Open(t)), start: time.Now(),
		Address: func(host string) string { return host }, Pages: map[string]int{}}
	c.e = engine.New(cfg, engine.Options{
		Exact:     true,
		CachedFor: func([]byte) time.Duration { return 24 * time.Hour },
		Cached: func(host []byte) (netip.Addr, error, bool) {
			h := fnv.New32()
			h.Write([]byte(c.Address(string(host))))
			n := h.Sum32()
			return netip.AddrFrom4([4]byte{11, byte(n >> 16), byte(n >> 8), byte(n)}), nil, true
		},
	})
	c.store.SetSlotGap(time.Duration(float64(time.Second) / cfg.ReqHostPerSec))
	c.store.SetBudget(cfg.Crawl.Budget)
	c.store.SetAhead(r.Ahead(&cfg))
	c.store.OnWake(c.e.WakeIndex)
	c.e.Advance(0, c.start)
	c.spider = c.e.Connected("spider")
	return c
}

func (c *Crawl) after(d time.Duration, do func()) {
	c.events++
	heap.Push(&c.todo, todo{time.Now().Add(d), c.events, do})
}

// Put puts links of a page; "": they are not links.
func (c *Crawl) Put(page string, urls ...string) {
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

// Run crawls for some time.
func (c *Crawl) Run(d time.Duration) {
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
func (c *Crawl) flush() {
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

func (c *Crawl) fetched(trans protocol.Trans, id, url string) {
	host := string(docindex.HostOf([]byte(url)))
	c.Pages[host[strings.IndexByte(host, '.')+1:]]++
	c.Put(id, c.Links(url)...)
	c.e.Lines(c.spider, []engine.Line{{Status: protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200,
		HasStatus: true}}})
}
