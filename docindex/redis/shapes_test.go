package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
	"urlserver/internal/testkit/redistest"
)

func TestShapes(t *testing.T) {
	addr := redistest.Start(t).Addr()
	indextest.RunShapes(t, func(t *testing.T) docindex.Store { return openStore(t, nil, addr) })
}

// shapeTwins do the same with a store in Redis and one in memory, which have to hand out the
// documents of a host in the same order: links of some shapes, and documents that have an order.
type shapeTwins struct {
	t      *testing.T
	rnd    *rand.Rand
	stores [2]docindex.Store
	ids    [2]map[string]string // DOC_ID by URL, of each
	out    []string             // URLs that the slots have
	puts   int
}

func TestShapesTwin(t *testing.T) {
	addr := redistest.Start(t).Addr()
	for seed := range uint64(8) {
		w := shapeTwins{t: t, rnd: rand.New(rand.NewPCG(seed, 3)),
			stores: [2]docindex.Store{memory.New(), openStore(t, nil, addr)}, ids: [2]map[string]string{{}, {}}}
		ahead := docindex.Ahead{Queue: w.rnd.IntN(2) * (1 + w.rnd.IntN(9))}
		for _, store := range w.stores {
			store.SetAhead(ahead)
		}
		for step := 0; step < 150 && !t.Failed(); step++ {
			switch n := w.rnd.IntN(20); {
			case n < 8:
				w.put()
			case n < 14:
				w.take(1 + w.rnd.IntN(12))
			default:
				w.end()
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (w *shapeTwins) url() string {
	shape := []string{"a/", "b/", "cal/2026-11-", "x?page=", "x?sort=", "d/e/f/"}[w.rnd.IntN(6)]
	return fmt.Sprintf("http://h%d.test/%s%d", w.rnd.IntN(2), shape, w.rnd.IntN(60))
}

// put puts links on a few pages, and now and then what has an order of its own.
func (w *shapeTwins) put() {
	var p [2]docindex.Puts
	page := w.url()
	for range 1 + w.rnd.IntN(30) {
		w.puts++
		one := docindex.Put{URL: []byte(w.url()), Page: []byte(page)}
		switch w.rnd.IntN(12) {
		case 0:
			one.Page = nil
		case 1:
			one.Priority = w.rnd.Int32N(5) - 2
		case 2:
			one.Due = time.Now().Unix() - 100 + w.rnd.Int64N(50)
		case 3:
			one.Due = -w.rnd.Int64N(50) - 2
		case 4:
			one.Page = nil
			one.URL = fmt.Appendf(nil, "http://h%d.test/%c%d/", w.rnd.IntN(2), 'a'+w.rnd.IntN(26), w.puts)
		case 5:
			page = w.url()
		}
		for i := range p {
			if err := p[i].Add(one); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	for i, s := range w.stores {
		if _, err := s.Put(w.t.Context(), &p[i]); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *shapeTwins) take(n int) {
	var got [2]map[string][]string
	reject := []string{fmt.Sprintf("h%d.test", w.rnd.IntN(2))}
	for i, s := range w.stores {
		got[i] = map[string][]string{}
		var b docindex.Batch
		if err := s.Candidates(w.t.Context(), n, reject, &b); err != nil {
			w.t.Fatal(err)
		}
		for k := range b.Len() {
			url := string(b.At(k).URL)
			host := string(docindex.HostOf(b.At(k).URL))
			got[i][host] = append(got[i][host], url)
			if w.ids[i][url] = string(b.At(k).DocID); i == 0 {
				w.out = append(w.out, url)
			}
		}
	}
	for _, host := range []string{"h0.test", "h1.test"} {
		if !slices.Equal(got[0][host], got[1][host]) {
			w.t.Errorf("of %s come\n%q; want\n%q", host, got[1][host], got[0][host])
		}
	}
}

// end ends some of what the slots have, or returns it.
func (w *shapeTwins) end() {
	var done, back [2]docindex.Outcomes
	for range w.rnd.IntN(len(w.out) + 1) {
		at := w.rnd.IntN(len(w.out))
		url := w.out[at]
		w.out = slices.Delete(w.out, at, at+1)
		to := &done
		if w.rnd.IntN(3) == 0 {
			to = &back
		}
		for i := range w.stores {
			to[i].Add(docindex.Outcome{DocID: []byte(w.ids[i][url]), URL: []byte(url), Status: 200})
		}
	}
	for i, s := range w.stores {
		if err := s.Outcomes(w.t.Context(), &done[i]); err != nil {
			w.t.Fatal(err)
		}
		if err := s.Return(w.t.Context(), &back[i]); err != nil {
			w.t.Fatal(err)
		}
	}
}
