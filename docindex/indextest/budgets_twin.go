package indextest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"urlserver/docindex"
	"urlserver/internal/budgetmodel"
	"urlserver/internal/weburl"
)

// budgetTwin drives a store and a model of its budgets side by side: slots or clients, crawls,
// domains with some hosts each, of which the slots reject a few.
type budgetTwin struct {
	t      *testing.T
	s      docindex.Store
	rnd    *rand.Rand
	crawls map[string]*budgetmodel.Crawl
	docs   map[string]*twinDoc // by DOC_ID; those that have not ended
	out    []*twinDoc
	puts   int
	hosts  int            // of the domain that has most
	calls  bool           // clients take, and no slots
	ahead  docindex.Ahead // what the slots have at most
}

type twinDoc struct {
	url, id, host, domain, crawl string
	state                        docindex.State
}

// twinBudgets: whatever comes in whatever order, a domain that waits is handed out only when all
// wait.
func twinBudgets(t *testing.T, size webSize, open func(t *testing.T) docindex.Store) {
	for seed := range size.seeds {
		rnd := rand.New(rand.NewPCG(seed, 0))
		w := &budgetTwin{t: t, s: open(t), rnd: rnd, crawls: map[string]*budgetmodel.Crawl{},
			docs: map[string]*twinDoc{}, hosts: 1 << rnd.IntN(8)}
		for i := range 1 + rnd.IntN(3) {
			w.crawls[fmt.Sprintf("c%d", i)] = &budgetmodel.Crawl{}
		}
		w.setBudget(1 + rnd.IntN(12))
		switch seed % 3 {
		case 1:
			w.calls = true
			set(t, w.s, docindex.SetDelay, "", 0)
		case 2:
			w.ahead.Domain = 2 + rnd.IntN(8)
			w.ahead.Waiting = 1 + rnd.IntN(w.ahead.Domain)
			w.s.SetAhead(w.ahead)
		}
		for step := 0; step < size.steps && !t.Failed(); step++ {
			w.step()
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (w *budgetTwin) step() {
	switch n := w.rnd.IntN(100); {
	case n < 40:
		w.put()
	case n < 75 && w.calls:
		w.serve(1 + w.rnd.IntN(4+w.hosts/2))
	case n < 75:
		w.take(1+w.rnd.IntN(4+w.hosts/2), w.rejects())
	case n < 95:
		w.finish(1 + w.rnd.IntN(len(w.out)+1))
	case n < 97:
		w.check()
	case n == 99 && w.rnd.IntN(5) == 0:
		w.setBudget(w.rnd.IntN(12) + min(w.ahead.Domain, 1))
	}
}

func (w *budgetTwin) setBudget(pages int) {
	w.s.SetBudget(pages)
	for _, c := range w.crawls {
		c.SetBudget(pages)
	}
}

// put puts some pages, most of them on a domain of many hosts.
func (w *budgetTwin) put() {
	var p docindex.Puts
	for range 1 + w.rnd.IntN(4+w.hosts/2) {
		w.puts++
		domain := min(w.rnd.IntN(6), w.rnd.IntN(6))
		host := fmt.Sprintf("h%d.d%d.example", w.rnd.IntN(w.hosts>>domain+1), domain)
		one := &twinDoc{url: fmt.Sprintf("http://%s/%d", host, w.puts), id: fmt.Sprint(w.puts), host: host,
			domain: cmp.Or(weburl.Domain(host), host), crawl: fmt.Sprintf("c%d", w.rnd.IntN(len(w.crawls)))}
		w.docs[one.id] = one
		err := p.Add(docindex.Put{URL: []byte(one.url), DocID: []byte(one.id), Crawl: []byte(one.crawl)})
		if err != nil {
			w.t.Fatal(err)
		}
		w.crawls[one.crawl].Known(one.domain)
	}
	if _, err := w.s.Put(w.t.Context(), &p); err != nil {
		w.t.Fatal(err)
	}
}

// rejects returns hosts that the slots do not want.
func (w *budgetTwin) rejects() (hosts []string) {
	if w.rnd.IntN(2) == 0 {
		return nil
	}
	for range w.rnd.IntN(6) {
		hosts = append(hosts, fmt.Sprintf("h%d.d%d.example", w.rnd.IntN(4), w.rnd.IntN(4)))
	}
	return hosts
}

// take has pages be handed out, and shows the model one after the other.
func (w *budgetTwin) take(n int, rejects []string) {
	b := takeAll(w.t, w.s, n, rejects...)
	for i := range b.Len() {
		w.handedOut(string(b.At(i).DocID), rejects)
	}
	for crawl := range w.crawls {
		if ready := w.ready(crawl, rejects); b.Len() < n && len(ready) > 0 {
			w.t.Errorf("%d pages of %d are handed out, and %s has more: %v", b.Len(), n, crawl, ready)
		}
	}
}

// serve has clients be given a URL each of some queues, of one crawl or of all.
func (w *budgetTwin) serve(queues int) {
	r := any
	r.PerQueue, r.MaxQueues = 1, uint32(queues)
	of := slices.Sorted(maps.Keys(w.crawls))
	if w.rnd.IntN(2) == 0 {
		of = of[:1]
		r.AnyCrawl, r.Crawl = false, []byte(of[0])
	}
	given := 0
	err := w.s.Serve(w.t.Context(), r, func(h *docindex.Served) error {
		for i := range h.Len() {
			p := h.At(i)
			id := string(p.URL[bytes.LastIndexByte(p.URL, '/')+1:])
			w.handedOut(id, nil)
			given++
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, crawl := range of {
		if ready := w.ready(crawl, nil); given < queues && len(ready) > 0 {
			w.t.Errorf("%d URLs of %d are given, and %s has more: %v", given, queues, crawl, ready)
		}
	}
}

// ready returns the domains of a crawl of which something may be handed out.
func (w *budgetTwin) ready(crawl string, rejects []string) map[string]bool {
	ready, given, atSlots := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, d := range w.out {
		if d.crawl == crawl {
			given[d.host] = w.calls
			atSlots[d.domain]++
		}
	}
	for _, d := range w.docs {
		mayGo := d.state == docindex.Scheduled && !slices.Contains(rejects, d.host) && !given[d.host]
		if d.crawl == crawl && mayGo {
			ready[d.domain] = true
		}
	}
	if w.ahead.Domain > 0 {
		maps.DeleteFunc(ready, func(domain string, _ bool) bool {
			most := w.ahead.Domain
			if _, pages := w.crawls[crawl].Waits(domain); pages > 0 {
				most = w.ahead.Waiting
			}
			return atSlots[domain] >= most
		})
	}
	return ready
}

func (w *budgetTwin) handedOut(id string, rejects []string) {
	d := w.docs[id]
	if d == nil || d.state != docindex.Scheduled {
		w.t.Fatalf("%s is handed out: %+v", id, d)
	}
	ready := func() map[string]bool { return w.ready(d.crawl, rejects) }
	active := map[string]bool{}
	for _, other := range w.docs {
		if other.crawl == d.crawl {
			active[other.domain] = true
		}
	}
	if !ready()[d.domain] {
		w.t.Errorf("%s of %s is handed out, of whose domain or queue there are enough", d.url, d.crawl)
	}
	if wrong := w.crawls[d.crawl].Page(d.domain, 1, ready, len(active)); wrong != "" {
		w.t.Errorf("%s of %s is handed out: %s", d.url, d.crawl, wrong)
	}
	d.state = docindex.InTransit
	w.out = append(w.out, d)
}

// finish ends pages, or has the slots return them.
func (w *budgetTwin) finish(n int) {
	var done, back docindex.Outcomes
	for range min(n, len(w.out)) {
		i := w.rnd.IntN(len(w.out))
		d := w.out[i]
		w.out[i] = w.out[len(w.out)-1]
		w.out = w.out[:len(w.out)-1]
		o := docindex.Outcome{DocID: []byte(d.id), URL: []byte(d.url), Status: 200}
		if w.calls {
			put(w.t, w.s, docindex.Put{URL: o.URL, Crawl: []byte(d.crawl), Update: true, Due: docindex.Never})
			delete(w.docs, d.id)
		} else if w.rnd.IntN(4) == 0 {
			back.Add(o)
			d.state = docindex.Scheduled
		} else {
			done.Add(o)
			delete(w.docs, d.id)
		}
	}
	if err := w.s.Outcomes(w.t.Context(), &done); err != nil {
		w.t.Fatal(err)
	}
	if err := w.s.Return(w.t.Context(), &back); err != nil {
		w.t.Fatal(err)
	}
}

// check compares what is told of a host with the model.
func (w *budgetTwin) check() {
	for _, d := range w.docs {
		if d.state != docindex.Scheduled {
			continue
		}
		status, err := w.s.HostStatus(w.t.Context(), []byte(d.host))
		if err != nil {
			w.t.Fatal(err)
		}
		if told := status.AtSlots.Wait; told.Rule == docindex.WaitOverBudget {
			round, pages := w.crawls[told.Crawl].Waits(told.Name)
			if told.Name != d.domain || int(told.Round) != round || int(told.Count) != pages {
				w.t.Errorf("%s waits: %+v; want round %d, %d pages", d.host, told, round, pages)
			}
		}
		return
	}
}
