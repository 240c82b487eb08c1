package indextest

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"urlserver/docindex"
)

type budgetCase struct {
	name string
	test func(*testing.T, func(t *testing.T) docindex.Store)
}

// RunBudgets runs the suite of budgets of domains and of turns of crawls.
func RunBudgets(t *testing.T, open func(t *testing.T) docindex.Store) {
	runBudgets(t, webSize{sites: 1000 / scale(), names: 1_000_000 / scale(), perTick: 500 / scale(),
		seconds: 3600 / scale(), budget: 1000 / scale(), hosts: 100_000 / scale(), answers: 200,
		seeds: 12, steps: 250}, open)
}

// RunSmallBudgets is RunBudgets for stores that take long.
func RunSmallBudgets(t *testing.T, open func(t *testing.T) docindex.Store) {
	runBudgets(t, webSize{sites: 60, names: 600, perTick: 30, seconds: 16, budget: 6, hosts: 400, answers: 20,
		seeds: 3, steps: 80}, open)
}

func runBudgets(t *testing.T, size webSize, open func(t *testing.T) docindex.Store) {
	sized := func(test func(*testing.T, webSize, func(t *testing.T) docindex.Store)) func(*testing.T,
		func(t *testing.T) docindex.Store) {
		return func(t *testing.T, open func(t *testing.T) docindex.Store) { test(t, size, open) }
	}
	for _, c := range []budgetCase{
		{"a domain of generated names", sized(spamDomain)},
		{"a budget is told", toldBudget},
		{"a budget is told where others have work", toldWhereOthersHaveWork},
		{"nobody waits for nothing", onlyOverBudget},
		{"few of a domain ahead", fewOfDomain},
		{"a domain does not fill the slots", fullSlots},
		{"a twin by seeds", sized(twinBudgets)},
		{"a big crawl and a small one", sized(fairCrawls)},
		{"clients serve crawls in turn", sized(fairCalls)},
		{"a crawl over its budgets beside another one", overBudgetBesideAnother},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// webSize is how large a web is, and how long it is crawled.
type webSize struct {
	sites   int // honest
	names   int // generated, at most
	perTick int // pages a second
	seconds int
	budget  int

	hosts   int // of the big one of two crawls
	answers int // of ten pages each

	seeds uint64 // of the twin
	steps int    // of each
}

// web is honest sites, and a domain that 99 of 100 links go to. Each second the slots fetch so many
// pages as they can, at most one of each host.
type web struct {
	webSize
	t     *testing.T
	s     docindex.Store
	links int // of a page; all but one of them to generated names

	spam int // names generated so far
	next int // number of the next honest page
}

// scale is the part of the full size that tests have.
func scale() int {
	if os.Getenv("DOCINDEX_10M") != "" { // by hand: it takes minutes
		return 1
	}
	return 10
}

func newWeb(t *testing.T, size webSize, s docindex.Store, links int) *web {
	w := &web{t: t, webSize: size, s: s, links: links}
	var p docindex.Puts
	for range 3 {
		for site := range w.sites {
			w.honest(&p, site)
		}
	}
	w.put(&p)
	return w
}

func (w *web) honest(p *docindex.Puts, site int) {
	w.next++
	w.add(p, fmt.Appendf(nil, "http://www.site-%d.example/%d", site, w.next))
}

func (w *web) add(p *docindex.Puts, url []byte) {
	if err := p.Add(docindex.Put{URL: url}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *web) put(p *docindex.Puts) {
	if _, err := w.s.Put(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
	p.Reset()
}

// takeAll takes documents as the slots do while they have room: until an answer is empty.
func takeAll(t *testing.T, s docindex.Store, n int, reject ...string) *docindex.Batch {
	t.Helper()
	var b docindex.Batch
	for more := -1; b.Len() < n && b.Len() > more; {
		more = b.Len()
		if err := s.Candidates(t.Context(), n-b.Len(), reject, &b); err != nil {
			t.Fatal(err)
		}
	}
	return &b
}

// second fetches for a second and returns how many honest pages were among it, and how many others.
func (w *web) second() (honest, others int) {
	b := takeAll(w.t, w.s, w.perTick)
	var p docindex.Puts
	var o docindex.Outcomes
	seen := map[string]bool{}
	for i := range b.Len() {
		c := b.At(i)
		host := string(docindex.HostOf(c.URL))
		if o.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL, Status: 200, Attempts: 1}); seen[host] {
			w.t.Fatalf("%s comes twice in a second", host)
		}
		seen[host] = true
		if site := w.siteOf(c.URL); site >= 0 {
			honest++
			w.honest(&p, site)
		} else {
			others++
		}
		w.spread(&p)
	}
	if err := w.s.Outcomes(w.t.Context(), &o); err != nil {
		w.t.Fatal(err)
	}
	w.put(&p)
	return honest, others
}

// siteOf returns the number of an honest site; -1: it is none.
func (w *web) siteOf(url []byte) (site int) {
	if _, err := fmt.Sscanf(string(docindex.HostOf(url)), "www.site-%d.example", &site); err != nil {
		return -1
	}
	return site
}

// spread puts the links of a page to generated names.
func (w *web) spread(p *docindex.Puts) {
	for range min(w.links-1, w.names-w.spam) {
		w.spam++
		w.add(p, fmt.Appendf(nil, "http://n%d.trap.example/", w.spam))
	}
}

// run fetches for some time and returns how many honest pages that brings.
func (w *web) run() (honest int) {
	for range w.seconds {
		n, others := w.second()
		if honest += n; n+others < w.perTick {
			w.t.Fatalf("%d pages in a second, of %d that could be fetched", n+others, w.perTick)
		}
	}
	return honest
}

// spamDomain: honest sites are fetched as they are without a domain of generated names beside them.
func spamDomain(t *testing.T, size webSize, open func(t *testing.T) docindex.Store) {
	run := func(budget, links int) int {
		s := open(t)
		s.SetBudget(budget)
		return newWeb(t, size, s, links).run()
	}
	alone := run(size.budget, 1)
	if got := run(size.budget, 100); got < alone*95/100 {
		t.Errorf("%d honest pages beside a domain of generated names; want 95 %% of %d", got, alone)
	} else {
		t.Logf("%d honest pages of %d", got, alone)
	}
	if got := run(0, 100); got > alone/2 {
		t.Errorf("%d honest pages of %d without budgets: the test shows nothing", got, alone)
	}
}

// onlyOverBudget: a crawl goes on where all domains are over their budgets, and where one is alone.
func onlyOverBudget(t *testing.T, open func(t *testing.T) docindex.Store) {
	s := open(t)
	s.SetBudget(10)
	n := 0
	for i := range 300 {
		put(t, s, urls(fmt.Sprintf("http://h%d.a.example/", i), fmt.Sprintf("http://h%d.b.example/", i))...)
		n += 2
	}
	put(t, s, urls("http://c.example/")...)
	for got := 0; got < n+1; got += 7 {
		b := takeAll(t, s, 7)
		if b.Len() != min(7, n+1-got) {
			t.Fatalf("%d documents after %d; want 7", b.Len(), got)
		}
		end(t, s, b)
	}
}

// putForBudget puts a domain of 100 hosts and five others, with a budget of ten pages. It returns what
// the last of the 100 hosts waits for.
func putForBudget(t *testing.T, s docindex.Store) (wait func() docindex.Wait) {
	s.SetBudget(10)
	for i := range 100 {
		put(t, s, urls(fmt.Sprintf("http://h%d.a.example/", i))...)
	}
	for i := range 5 {
		put(t, s, urls(fmt.Sprintf("http://b%d.example/1", i), fmt.Sprintf("http://b%d.example/2", i))...)
	}
	return func() docindex.Wait {
		l, err := s.HostStatus(t.Context(), []byte("h99.a.example"))
		if err != nil {
			t.Fatal(err)
		}
		return l.AtSlots.Wait
	}
}

// toldWhereOthersHaveWork: the status of a host says that its domain is over its budget as long as other
// domains have documents.
func toldWhereOthersHaveWork(t *testing.T, open func(t *testing.T) docindex.Store) {
	s := open(t)
	wait := putForBudget(t, s)
	end(t, s, take(t, s, 10))
	end(t, s, take(t, s, 1))
	if w := wait(); w.Rule != docindex.WaitOverBudget {
		t.Errorf("it waits: %+v; want the budget", w)
	}
	for i := range 5 {
		if _, err := s.Delete(t.Context(), docindex.Scope{Key: fmt.Appendf(nil, "b%d.example", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if w := wait(); w != (docindex.Wait{}) {
		t.Errorf("alone it waits: %+v; want that it may go", w)
	}
}

// toldBudget: the status of a host says that its domain is over its budget.
func toldBudget(t *testing.T, open func(t *testing.T) docindex.Store) {
	s := open(t)
	wait := putForBudget(t, s)
	if w := wait(); w != (docindex.Wait{}) {
		t.Errorf("at first it waits: %+v", w)
	}
	end(t, s, take(t, s, 10))
	want := docindex.Wait{Rule: docindex.WaitOverBudget, Crawl: "DEFAULT", Name: "a.example", Round: 2, Count: 50}
	if w := wait(); w.Rule != want.Rule || w.Name != want.Name || w.Round != 2 || w.Count != want.Count {
		t.Errorf("it waits: %+v; want %+v", w, want)
	}
	end(t, s, take(t, s, 3))
	if w := wait(); w.Rule != want.Rule || w.Count != want.Count-3 {
		t.Errorf("three pages later it waits: %+v", w)
	}
	s.SetBudget(0)
	if w := wait(); w != (docindex.Wait{}) {
		t.Errorf("without budgets it waits: %+v", w)
	}
}

// twoCrawls fills a big crawl, of many hosts, and a small one, of ten.
func twoCrawls(t *testing.T, s docindex.Store, size webSize) {
	var p docindex.Puts
	add := func(crawl, host string, page int) {
		url := fmt.Appendf(nil, "http://%s/%d", host, page)
		if err := p.Add(docindex.Put{URL: url, Crawl: []byte(crawl)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range size.hosts {
		add("big", fmt.Sprintf("b%d.example", i), 0)
	}
	for i := range 10 * size.answers {
		add("small", fmt.Sprintf("s%d.example", i%10), i)
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

// jain is Jain's index of what two crawls have had by their weights: 1 is fair (Jain, Chiu, Hawe
// 1984).
func jain(x, y float64) float64 { return math.Pow(x+y, 2) / (2 * (x*x + y*y)) }

func fairCrawls(t *testing.T, size webSize, open func(t *testing.T) docindex.Store) {
	for _, weight := range []float64{1, 4, 0.25} {
		s := open(t)
		text := fmt.Appendf(nil, `{"weight":%v}`, weight)
		if err := s.SetCrawlSettings(t.Context(), "small", text); err != nil {
			t.Fatal(err)
		}
		twoCrawls(t, s, size)
		n, all := map[string]float64{}, float64(10*size.answers)
		for range size.answers {
			b := take(t, s, 10)
			for i := range b.Len() {
				n[string(b.At(i).Crawl)]++
			}
			end(t, s, b)
		}
		if j := jain(n["big"], n["small"]/weight); j < 0.99 || n["big"]+n["small"] != all {
			t.Errorf("with weight %v: %v, Jain's index %.4f; want 0.99", weight, n, j)
		}
	}
}

// fairCalls has clients be served one URL a queue.
func fairCalls(t *testing.T, size webSize, open func(t *testing.T) docindex.Store) {
	for _, weight := range []float64{1, 4, 0.25} {
		s := open(t)
		text := fmt.Appendf(nil, `{"weight":%v}`, weight)
		if err := s.SetCrawlSettings(t.Context(), "small", text); err != nil {
			t.Fatal(err)
		}
		n, all := served(t, s, size), float64(5*size.answers)
		if j := jain(n["big"], n["small"]/weight); j < 0.99 || n["big"]+n["small"] != all {
			t.Errorf("with weight %v: %v, Jain's index %.4f; want 0.99", weight, n, j)
		}
	}
}

// served has clients be served pages of two crawls, and counts those of each. The queues have no
// delay.
func served(t *testing.T, s docindex.Store, size webSize) map[string]float64 {
	set(t, s, docindex.SetDelay, "", 0)
	twoCrawls(t, s, size)
	n := map[string]float64{}
	one := any
	one.PerQueue, one.MaxQueues = 1, 5
	for range size.answers {
		var done docindex.Puts
		err := s.Serve(t.Context(), one, func(h *docindex.Served) (err error) {
			for i := 0; i < h.Len() && err == nil; i++ {
				p := h.At(i)
				n[string(p.Crawl)]++
				p.Update, p.Due = true, docindex.Never
				err = done.Add(p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), &done); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// overBudgetBesideAnother: a crawl all domains of which wait has its turns beside one that is
// within its budgets.
func overBudgetBesideAnother(t *testing.T, open func(t *testing.T) docindex.Store) {
	s := open(t)
	s.SetBudget(4)
	n := map[string]float64{}
	for i := range 200 { // these are in nobody's way
		put(t, s, docindex.Put{URL: fmt.Appendf(nil, "http://later%d.example/", i), Crawl: []byte("over"),
			Due: time.Now().Unix() + 300})
	}
	for i := range 60 {
		for _, host := range []string{"h%d.a.example", "h%d.b.example"} {
			url := fmt.Appendf(nil, "http://"+host+"/", i)
			put(t, s, docindex.Put{URL: url, Crawl: []byte("over")})
		}
		put(t, s, docindex.Put{URL: fmt.Appendf(nil, "http://h%d.example/", i), Crawl: []byte("within")})
	}
	for range 10 {
		b := takeAll(t, s, 8)
		for i := range b.Len() {
			n[string(b.At(i).Crawl)]++
		}
		end(t, s, b)
	}
	if j := jain(n["over"], n["within"]); j < 0.98 || n["over"]+n["within"] != 80 {
		t.Errorf("%v, Jain's index %.4f; want it fair", n, j)
	}
}

// RunSharedBudgets runs the suite of stores that several daemons share, each with budgets of its
// own.
func RunSharedBudgets(t *testing.T, open func(t *testing.T) []docindex.Store) {
	size := webSize{sites: 60, names: 900, perTick: 30, seconds: 16, budget: 6}
	run := func(links int) (honest int) {
		stores := open(t)
		for _, s := range stores {
			s.SetBudget(size.budget)
		}
		w := newWeb(t, size, stores[0], links)
		for i := range size.seconds {
			w.s = stores[i%len(stores)]
			n, _ := w.second()
			honest += n
		}
		return honest
	}
	alone := run(1)
	if got := run(100); got < alone*95/100 {
		t.Errorf("%d honest pages beside a domain of generated names; want 95 %% of %d", got, alone)
	}
}
