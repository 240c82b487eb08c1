package disk_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
)

// TestTwin does the same random operations on the disk store and on the memory store. Both must
// give out the same URLs, in the same order within each queue, and have the same counts.
func TestTwin(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := twins{t: t, path: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 7)), memory: memory.New()}
				w.disk = open(t, w.path, disk.None)
				w.disk.Hurry()
				w.run()
			})
		})
	}
}

type twins struct {
	t      *testing.T
	path   string
	rnd    *rand.Rand
	memory *memory.Store
	disk   *disk.Store
	ids    [2]map[string]string // DOC_ID by URL, of each
}

func (w *twins) run() {
	w.ids = [2]map[string]string{{}, {}}
	set := docindex.Setting{Kind: docindex.SetDelay, Value: uint64(w.rnd.IntN(3))}
	for _, s := range w.both() {
		if err := s.Set(w.t.Context(), set); err != nil {
			w.t.Fatal(err)
		}
	}
	for step := range 600 {
		switch n := w.rnd.IntN(20); {
		case n < 8:
			w.put()
		case n < 12:
			w.serve(step)
		case n < 14:
			w.handOut(step)
		case n < 15:
			w.end()
		case n < 16:
			w.purge()
		default:
			time.Sleep(time.Duration(w.rnd.IntN(8000)) * time.Millisecond)
		}
		if step%10 == 0 {
			w.disk.ForgetNames()
		}
		if a, b := indextest.Count(w.t, w.memory, nil), indextest.Count(w.t, w.disk, nil); a != b {
			w.t.Fatalf("step %d: counts are %+v; want %+v", step, b, a)
		}
		if w.t.Failed() {
			w.t.Fatalf("step %d", step)
		}
	}
	w.compare()
	if err := w.disk.Check(); err != nil {
		w.t.Error(err)
	}
}

// compare compares state, due time and last outcome of all documents.
func (w *twins) compare() {
	var got [2]map[string]string
	for i, s := range w.both() {
		got[i] = map[string]string{}
		if err := s.List(w.t.Context(), docindex.Scope{}, func(d *docindex.Document) bool {
			got[i][fmt.Sprintf("%s %s", d.Key, d.URL)] = fmt.Sprintf("%v, due %d, last %+v", d.State, d.Due, d.Last)
			return true
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	for url, want := range got[0] {
		if got[1][url] != want {
			w.t.Errorf("%s is %s; want %s", url, got[1][url], want)
		}
	}
}

func (w *twins) both() []docindex.Store { return []docindex.Store{w.memory, w.disk} }

func (w *twins) url() []byte {
	return fmt.Appendf(nil, "http://h%d.test/%d", w.rnd.IntN(4), w.rnd.IntN(60))
}

// link returns a URL of one of some shapes, or a shape of its own, of a host with few other URLs.
func (w *twins) link() []byte {
	shape := []string{"a/", "b/", "cal/2026-11-", "x?page=", "d/e/f/"}[w.rnd.IntN(5)]
	return fmt.Appendf(nil, "http://h%d.test/%s%d", w.rnd.IntN(2), shape, w.rnd.IntN(60))
}

// any returns a URL of either kind.
func (w *twins) any() []byte {
	if w.rnd.IntN(2) == 0 {
		return w.link()
	}
	return w.url()
}

// put puts or updates some URLs, in queues of one host or of several. Some are links on a page.
func (w *twins) put() {
	var p [2]docindex.Puts
	page := w.any()
	for range 1 + w.rnd.IntN(40) {
		put := docindex.Put{URL: w.url(), Priority: w.rnd.Int32N(3), Update: w.rnd.IntN(3) == 0, Due: docindex.Now}
		switch w.rnd.IntN(4) {
		case 0:
			put.Due = time.Now().Unix() + w.rnd.Int64N(40) - 20
		case 1:
			if put.Update {
				put.Due = docindex.Never
			}
		}
		if w.rnd.IntN(8) == 0 {
			put.Key, put.URL = []byte("mixed"), append(put.URL, "?mixed"...)
		}
		if w.rnd.IntN(2) == 0 {
			put.URL, put.Key, put.Due, put.Priority, put.Page = w.link(), nil, 0, w.rnd.Int32N(4)/3, page
			if w.rnd.IntN(5) == 0 {
				page = w.any()
			}
		}
		for i := range p {
			if err := p[i].AddExact(put, docindex.HostOf(put.URL)); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	for i, s := range w.both() {
		if _, err := s.Put(w.t.Context(), &p[i]); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range p[0].Len() {
		if a, b := p[0].Verdict(i), p[1].Verdict(i); a != b {
			put, _ := p[0].At(i)
			w.t.Errorf("verdict on %s is %v; want %v", put.URL, b, a)
		}
	}
}

// serve compares what the stores give to URL Frontier clients, queue by queue.
func (w *twins) serve(step int) {
	r := docindex.Request{AnyCrawl: true, PerQueue: uint32(w.rnd.IntN(12)),
		Lease: time.Duration(1+w.rnd.IntN(20_000)) * time.Millisecond}
	var got [2]map[string][]string
	var calls sync.WaitGroup
	for i, s := range w.both() { // at once, as one that finds nothing may wait a moment
		got[i] = map[string][]string{}
		calls.Go(func() {
			if err := s.Serve(w.t.Context(), r, func(h *docindex.Served) error {
				for k := range h.Len() {
					p := h.At(k)
					got[i][string(p.Key)] = append(got[i][string(p.Key)], string(p.URL))
				}
				return nil
			}); err != nil {
				w.t.Error(err)
			}
		})
	}
	calls.Wait()
	// In a queue of several hosts the order of the hosts may differ between the stores.
	for _, key := range []string{"h0.test", "h1.test", "h2.test", "h3.test", "mixed"} {
		if !slices.Equal(got[0][key], got[1][key]) {
			w.t.Errorf("step %d: %s gave\n%q; want\n%q", step, key, got[1][key], got[0][key])
		}
	}
}

// handOut takes all candidates that are available, and compares them.
func (w *twins) handOut(step int) {
	lease := time.Duration(1+w.rnd.IntN(20)) * time.Second
	var got [2][]string
	for i, s := range w.both() {
		var b docindex.Batch
		if err := s.Lease(w.t.Context(), 1000, []string{"h0.test"}, lease, &b); err != nil {
			w.t.Fatal(err)
		}
		for k := range b.Len() {
			got[i] = append(got[i], string(b.At(k).URL))
			w.ids[i][string(b.At(k).URL)] = string(b.At(k).DocID)
		}
		slices.Sort(got[i])
	}
	if !slices.Equal(got[0], got[1]) {
		w.t.Errorf("step %d: the slots are given\n%q; want\n%q", step, strings.Join(got[1], " "),
			strings.Join(got[0], " "))
	}
}

// end reports outcomes of some documents that the slots have, or returns them.
func (w *twins) end() {
	var o [2]docindex.Outcomes
	for range w.rnd.IntN(10) {
		url, status := w.any(), w.rnd.IntN(600)
		for i := range o {
			if id := w.ids[i][string(url)]; id != "" {
				o[i].Add(docindex.Outcome{DocID: []byte(id), URL: url, Kind: docindex.Done, Status: status})
			}
		}
	}
	back := w.rnd.IntN(2) == 0
	for i, s := range w.both() {
		err := error(nil)
		if back {
			err = s.Return(w.t.Context(), &o[i])
		} else {
			err = s.Outcomes(w.t.Context(), &o[i])
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// purge deletes old documents, or a queue.
func (w *twins) purge() {
	scope := docindex.Scope{Key: fmt.Appendf(nil, "h%d.test", w.rnd.IntN(4))}
	before := time.Now().Add(-time.Duration(w.rnd.IntN(600)) * time.Second)
	whole := w.rnd.IntN(6) == 0
	var got [2]int
	for i, s := range w.both() {
		var err error
		if whole {
			got[i], err = s.Delete(w.t.Context(), scope)
		} else {
			got[i], err = s.Purge(w.t.Context(), scope, before)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.ids = [2]map[string]string{{}, {}} // only one of the stores gives a URL the same DOC_ID after a deletion
	if got[0] != got[1] {
		w.t.Errorf("forgotten are %d; want %d", got[1], got[0])
	}
}
