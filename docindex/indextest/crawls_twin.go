package indextest

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
)

// Each run does the same operations unless it gets another seed.
var crawlsSeed = flag.Uint64("crawls-seed", 1, "of the random things done to crawls")

// RunCrawlsTwin does random operations on a store. After each one it counts all documents that the
// store lists, and compares the counts with the store's. Between two operations the store may lose
// what is in transit, as after a restart.
func RunCrawlsTwin(t *testing.T, s docindex.Store) {
	t.Logf("seed %d", *crawlsSeed)
	w := &walker{t: t, s: s, rng: rand.New(rand.NewPCG(*crawlsSeed, 1)), atSlots: map[string]docindex.Outcome{}}
	steps := []func(){w.put, w.put, w.put, w.news, w.take, w.end, w.giveBack, w.call, w.stop, w.forget}
	count := 1500
	if testing.Short() {
		count = 300
	}
	for range count {
		steps[w.rng.IntN(len(steps))]()
		w.check()
	}
}

type walker struct {
	t       *testing.T
	s       docindex.Store
	rng     *rand.Rand
	atSlots map[string]docindex.Outcome // by DOC_ID
	stops   int
}

func (w *walker) some() docindex.Put {
	p := crawlPut(fmt.Sprintf("c%d", w.rng.IntN(3)+w.stops/3),
		fmt.Sprintf("http://h%d.d%d.test/%d", w.rng.IntN(3), w.rng.IntN(4), w.rng.IntN(20)), int32(w.rng.IntN(4)))
	if w.rng.IntN(5) == 0 {
		p.Metadata = nil
	}
	return p
}

func (w *walker) put() { put(w.t, w.s, w.some(), w.some()) }

func (w *walker) news() {
	p := w.some()
	p.Update = true
	if w.rng.IntN(3) == 0 {
		p.Due = docindex.Never
	}
	d, err := w.s.Find(w.t.Context(), docindex.Scope{Crawl: p.Crawl, Key: docindex.HostOf(p.URL)}, p.URL)
	if err == nil {
		delete(w.atSlots, string(d.DocID)) // the update ends its transit
	}
	add(w.t, w.s, p)
}

func (w *walker) take() {
	b := take(w.t, w.s, 1+w.rng.IntN(4))
	for i := range b.Len() {
		c := b.At(i)
		w.atSlots[string(c.DocID)] = docindex.Outcome{DocID: slices.Clone(c.DocID), URL: slices.Clone(c.URL)}
	}
}

// pick removes a document from atSlots and returns it.
func (w *walker) pick() (o docindex.Outcomes) {
	var ids []string
	for id := range w.atSlots {
		ids = append(ids, id)
	}
	if len(ids) > 0 {
		slices.Sort(ids)
		id := ids[w.rng.IntN(len(ids))]
		o.Add(w.atSlots[id])
		delete(w.atSlots, id)
	}
	return o
}

func (w *walker) end() {
	o := w.pick()
	report(w.t, w.s, &o)
}

func (w *walker) giveBack() {
	o := w.pick()
	if err := w.s.Return(w.t.Context(), &o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *walker) call() {
	r := docindex.Request{AnyCrawl: true, MaxQueues: 1, PerQueue: 1, Lease: time.Hour}
	var served []docindex.Put
	if err := w.s.Serve(w.t.Context(), r, func(h *docindex.Served) error {
		for i := range h.Len() {
			got := h.At(i)
			served = append(served, docindex.Put{URL: slices.Clone(got.URL), Key: slices.Clone(got.Key),
				Crawl: []byte(got.Crawl)})
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	for _, p := range served { // the slots had it if the store was opened again
		d, err := w.s.Find(w.t.Context(), docindex.Scope{Crawl: p.Crawl, Key: p.Key}, p.URL)
		if err != nil {
			w.t.Fatal(err)
		}
		delete(w.atSlots, string(d.DocID))
	}
}

func (w *walker) stop() {
	if w.rng.IntN(10) != 0 {
		return
	}
	w.stops++
	crawl := fmt.Sprintf("c%d", w.rng.IntN(3)+w.stops/3)
	stopCrawl(w.t, w.s, crawl, func(o *docindex.Outcomes) {
		for i := range o.Len() {
			if _, ok := w.atSlots[string(o.At(i).DocID)]; !ok {
				w.t.Fatalf("told is %s, which is not at the slots", o.At(i).DocID)
			}
		}
	})
}

func (w *walker) forget() {
	if w.rng.IntN(10) != 0 {
		return
	}
	crawl := fmt.Appendf(nil, "c%d", w.rng.IntN(4))
	for id := range w.atSlots {
		if d, err := w.s.Document(w.t.Context(), []byte(id)); err == nil && string(d.Crawl) == string(crawl) {
			delete(w.atSlots, id)
		}
	}
	if _, err := w.s.Delete(w.t.Context(), docindex.Scope{Crawl: crawl}); err != nil {
		w.t.Fatal(err)
	}
}

// recount makes a PendingReport from all documents that the store lists.
func (w *walker) recount() docindex.PendingReport {
	crawls := map[string]map[string][]int32{} // priorities of what is pending, by crawl and domain
	distinct := map[string]bool{}
	for _, crawl := range CrawlsOf(w.t, w.s) {
		err := w.s.List(w.t.Context(), docindex.Scope{Crawl: []byte(crawl)}, func(d *docindex.Document) bool {
			_, slots := w.atSlots[string(d.DocID)]
			if len(d.Metadata) == 0 || d.State != docindex.Scheduled && (d.State != docindex.InTransit || !slots) {
				return true
			}
			domain := string(docindex.HostOf(d.URL))[len("h0."):]
			if crawls[crawl] == nil {
				crawls[crawl] = map[string][]int32{}
			}
			crawls[crawl][domain] = append(crawls[crawl][domain], d.Priority)
			distinct[domain] = true
			return true
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	v := docindex.PendingReport{Domains: len(distinct), Count: len(crawls)}
	for crawl, domains := range crawls {
		c := docindex.CrawlPending{Crawl: crawl, Distinct: len(domains)}
		var all []int32
		for domain, levels := range domains {
			all = append(all, levels...)
			c.Domains = append(c.Domains, docindex.DomainPending{Domain: domain,
				Pending: pending(uint64(len(levels)), slices.Min(levels), slices.Max(levels))})
		}
		c.Pending = pending(uint64(len(all)), slices.Min(all), slices.Max(all))
		v.Total += c.Total
		slices.SortFunc(c.Domains, func(a, b docindex.DomainPending) int {
			return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Domain, b.Domain))
		})
		v.Crawls = append(v.Crawls, c)
	}
	slices.SortFunc(v.Crawls, func(a, b docindex.CrawlPending) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Crawl, b.Crawl))
	})
	return v
}

func (w *walker) check() {
	w.t.Helper()
	if got, want := pendingReport(w.t, w.s, "", 1000, nil), w.recount(); !reflect.DeepEqual(got, want) {
		w.t.Fatalf("survey is\n%+v; recounted\n%+v", got, want)
	}
}
