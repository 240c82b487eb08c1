package indextest

import (
	"cmp"
	"errors"
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

// RunCrawlsTwin does random operations on a store. After each one it counts the documents that the
// store lists of the crawls that the operation was about, and after some, each so many, of all crawls,
// and compares the counts with the store's. If that is each one, the store may lose between two
// operations what is in transit, as after a restart.
func RunCrawlsTwin(t *testing.T, some int, s docindex.Store) {
	t.Logf("seed %d", *crawlsSeed)
	w := &walker{t: t, s: s, rng: rand.New(rand.NewPCG(*crawlsSeed, 1)), atSlots: map[string]docindex.Outcome{},
		pending: map[string]domainLevels{}}
	steps := []func(){w.put, w.put, w.put, w.news, w.take, w.end, w.giveBack, w.call, w.stop, w.forget}
	count := 1500
	if testing.Short() {
		count = 300
	}
	for i := range count {
		steps[w.rng.IntN(len(steps))]()
		if i%some == 0 {
			clear(w.pending)
		}
		w.check()
	}
}

type walker struct {
	t       *testing.T
	s       docindex.Store
	rng     *rand.Rand
	atSlots map[string]docindex.Outcome // by DOC_ID
	stops   int
	pending map[string]domainLevels // by crawl, of those that were counted and not touched since
}

// domainLevels are the priorities of what is pending, by domain.
type domainLevels map[string][]int32

// touch has a crawl be counted anew.
func (w *walker) touch(crawl []byte) { delete(w.pending, string(crawl)) }

// touchAll does the same with the crawls of documents.
func (w *walker) touchAll(o *docindex.Outcomes) {
	for i := range o.Len() {
		d, err := w.s.Document(w.t.Context(), o.At(i).DocID)
		if err != nil && !errors.Is(err, docindex.ErrUnknown) {
			w.t.Fatal(err)
		}
		w.touch(d.Crawl)
	}
}

func (w *walker) some() docindex.Put {
	p := crawlPut(fmt.Sprintf("c%d", w.rng.IntN(3)+w.stops/3),
		fmt.Sprintf("http://h%d.d%d.test/%d", w.rng.IntN(3), w.rng.IntN(4), w.rng.IntN(20)), int32(w.rng.IntN(4)))
	if w.rng.IntN(5) == 0 {
		p.Metadata = nil
	}
	w.touch(p.Crawl)
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
	var taken docindex.Outcomes
	for i := range b.Len() {
		c := b.At(i)
		one := docindex.Outcome{DocID: slices.Clone(c.DocID), URL: slices.Clone(c.URL)}
		w.atSlots[string(c.DocID)] = one
		taken.Add(one)
	}
	w.touchAll(&taken)
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
	w.touchAll(&o)
	report(w.t, w.s, &o)
}

func (w *walker) giveBack() {
	o := w.pick()
	w.touchAll(&o)
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
		w.touch(p.Crawl)
	}
}

func (w *walker) stop() {
	if w.rng.IntN(10) != 0 {
		return
	}
	w.stops++
	crawl := fmt.Sprintf("c%d", w.rng.IntN(3)+w.stops/3)
	w.touch([]byte(crawl))
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
	w.touch(crawl)
	for id := range w.atSlots {
		if d, err := w.s.Document(w.t.Context(), []byte(id)); err == nil && string(d.Crawl) == string(crawl) {
			delete(w.atSlots, id)
		}
	}
	if _, err := w.s.Delete(w.t.Context(), docindex.Scope{Crawl: crawl}); err != nil {
		w.t.Fatal(err)
	}
}

// count counts the documents of a crawl that the store lists.
func (w *walker) count(crawl string) domainLevels {
	domains := domainLevels{}
	err := w.s.List(w.t.Context(), docindex.Scope{Crawl: []byte(crawl)}, func(d *docindex.Document) bool {
		_, slots := w.atSlots[string(d.DocID)]
		if len(d.Metadata) == 0 || d.State != docindex.Scheduled && (d.State != docindex.InTransit || !slots) {
			return true
		}
		domain := string(docindex.HostOf(d.URL))[len("h0."):]
		domains[domain] = append(domains[domain], d.Priority)
		return true
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return domains
}

// recount makes a PendingReport of what count says.
func (w *walker) recount() docindex.PendingReport {
	crawls := map[string]domainLevels{}
	distinct := map[string]bool{}
	for _, crawl := range CrawlsOf(w.t, w.s) {
		if w.pending[crawl] == nil {
			w.pending[crawl] = w.count(crawl)
		}
		if len(w.pending[crawl]) > 0 {
			crawls[crawl] = w.pending[crawl]
		}
		for domain := range w.pending[crawl] {
			distinct[domain] = true
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
