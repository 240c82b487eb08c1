package indextest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"urlserver/docindex"
	"urlserver/internal/budgetmodel"
	"urlserver/internal/weburl"
)

// budgetTwin drives a store and a model of its budgets side by side: slots, crawls, domains with some
// hosts each, of which the slots reject a few.
type budgetTwin struct {
	t      *testing.T
	s      docindex.Store
	rnd    *rand.Rand
	crawls map[string]*budgetmodel.Crawl
	docs   map[string]*twinDoc // by DOC_ID; those that have not ended
	out    []*twinDoc
	puts   int
	hosts  int // of the domain that has most
}

type twinDoc struct {
	url, id, host, domain, crawl string
	state                        docindex.State
}

// twinBudgets: whatever comes in whatever order, a domain that waits is handed out only when all wait.
func twinBudgets(t *testing.T, seeds uint64, open func(t *testing.T) docindex.Store) {
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 0))
		w := &budgetTwin{t: t, s: open(t), rnd: rnd, crawls: map[string]*budgetmodel.Crawl{},
			docs: map[string]*twinDoc{}, hosts: 1 << rnd.IntN(8)}
		for i := range 1 + rnd.IntN(3) {
			w.crawls[fmt.Sprintf("c%d", i)] = &budgetmodel.Crawl{}
		}
		w.setBudget(1 + rnd.IntN(12))
		for step := 0; step < 250 && !t.Failed(); step++ {
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
	case n < 75:
		w.take(1+w.rnd.IntN(4+w.hosts/2), w.rejects())
	case n < 95:
		w.finish(1 + w.rnd.IntN(len(w.out)+1))
	case n < 97:
		w.check()
	case n == 99 && w.rnd.IntN(5) == 0:
		w.setBudget(w.rnd.IntN(12))
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

// ready returns the domains of a crawl of which something may be handed out.
func (w *budgetTwin) ready(crawl string, rejects []string) map[string]bool {
	ready := map[string]bool{}
	for _, d := range w.docs {
		if d.crawl == crawl && d.state == docindex.Scheduled && !slices.Contains(rejects, d.host) {
			ready[d.domain] = true
		}
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
		if w.rnd.IntN(4) == 0 {
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
