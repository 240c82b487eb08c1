package memory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// twin does what Memory promises in the plainest way.
type twin struct {
	known map[string]*twinDoc
	queue map[string][]*twinDoc // scheduled, by host
	ring  []string              // hosts with something scheduled; the first goes next
	lent  []*twinDoc            // leased, in the order of their begin
	here  []*twinDoc            // handed out without a lease
}

// elsewhere reports whether documents of a host are out in another way: a host is lent, or worked
// on here.
func (w *twin) elsewhere(host string, lent bool) bool {
	other := w.lent
	if lent {
		other = w.here
	}
	return slices.ContainsFunc(other, func(d *twinDoc) bool { return d.host == host && !d.done })
}

type twinDoc struct {
	url, host string
	id        []byte // once it was handed out
	priority  int32
	number    int
	until     int // second at which the lease ends; 0: none
	done      bool
}

func (w *twin) put(url string, priority int32) bool {
	if w.known[url] != nil {
		return false
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	d := &twinDoc{url: url, host: host, priority: priority, number: len(w.known)}
	w.known[url] = d
	w.schedule(d)
	return true
}

func (w *twin) schedule(d *twinDoc) {
	if len(w.queue[d.host]) == 0 {
		w.ring = append(w.ring, d.host)
	}
	w.queue[d.host] = append(w.queue[d.host], d)
}

func (w *twin) next(host string) *twinDoc {
	q := w.queue[host]
	best := 0
	for i, d := range q {
		if d.priority > q[best].priority || d.priority == q[best].priority && d.number < q[best].number {
			best = i
		}
	}
	d := q[best]
	w.queue[host] = slices.Delete(q, best, best+1)
	return d
}

func (w *twin) take(max int, reject []string, until int) (urls []string) {
	var passed []string
	for len(urls) < max && len(w.ring) > 0 {
		host := w.ring[0]
		w.ring = w.ring[1:]
		if slices.Contains(reject, host) || w.elsewhere(host, until > 0) {
			passed = append(passed, host)
			continue
		}
		d := w.next(host)
		d.until = until
		if until > 0 {
			w.lent = append(w.lent, d)
		} else {
			w.here = append(w.here, d)
		}
		urls = append(urls, d.url)
		if len(w.queue[host]) > 0 {
			w.ring = append(w.ring, host)
		}
	}
	w.ring = append(passed, w.ring...)
	return urls
}

func (w *twin) expire(now int) {
	slices.SortStableFunc(w.lent, func(a, b *twinDoc) int { return a.until - b.until })
	for len(w.lent) > 0 && w.lent[0].until <= now {
		if d := w.lent[0]; !d.done {
			w.schedule(d)
		}
		w.lent = w.lent[1:]
	}
}

// TestMemoryTwin runs both side by side on what chance brings.
func TestMemoryTwin(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runTwins(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func runTwins(t *testing.T, rnd *rand.Rand) {
	m := memory.New()
	w := &twin{known: map[string]*twinDoc{}, queue: map[string][]*twinDoc{}}
	start := time.Now()
	hosts := 1 + rnd.IntN(20)
	spread := int32(1 + rnd.IntN(1000)*rnd.IntN(2)) // of priorities
	for step := range 1000 {
		now := int(time.Since(start) / time.Second)
		switch rnd.IntN(8) {
		case 0, 1, 2, 3:
			url := fmt.Sprintf("http://h%d.test/%d", rnd.IntN(hosts), rnd.IntN(300))
			priority := rnd.Int32N(spread)
			if got, want := putOne(t, m, url, priority), w.put(url, priority); got != want {
				t.Fatalf("step %d: put %s is new: %v; want %v", step, url, got, want)
			}
		case 4:
			time.Sleep(time.Duration(rnd.IntN(10)) * time.Second)
			if rnd.IntN(4) == 0 {
				returnBoth(t, m, w)
			}
		default:
			w.expire(now)
			takeBoth(t, m, w, rnd, step, now, hosts)
		}
	}
}

func putOne(t *testing.T, m *memory.Store, url string, priority int32) bool {
	var p docindex.Puts
	if err := p.Add(docindex.Put{URL: []byte(url), Priority: priority}); err != nil {
		t.Fatal(err)
	}
	res, err := m.Put(t.Context(), &p)
	if err != nil {
		t.Fatal(err)
	}
	return res.New == 1
}

// returnBoth gives back all that was handed out without a lease.
func returnBoth(t *testing.T, m *memory.Store, w *twin) {
	var o docindex.Outcomes
	for _, d := range w.here {
		if !d.done {
			o.Add(docindex.Outcome{DocID: d.id})
			w.schedule(d)
		}
	}
	w.here = nil
	if err := m.Return(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
}

// takeBoth compares what both hand out, and ends some of it.
func takeBoth(t *testing.T, m *memory.Store, w *twin, rnd *rand.Rand, step, now, hosts int) {
	var reject []string
	for range rnd.IntN(4) {
		reject = append(reject, fmt.Sprintf("h%d.test", rnd.IntN(hosts)))
	}
	lease := rnd.IntN(30) * rnd.IntN(2)
	until, max := 0, 1+rnd.IntN(12)
	var b docindex.Batch
	var err error
	if lease > 0 {
		until = now + lease
		err = m.Lease(t.Context(), max, reject, time.Duration(lease)*time.Second, &b)
	} else {
		err = m.Candidates(t.Context(), max, reject, &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := w.take(max, reject, until)
	var got []string
	var o docindex.Outcomes
	for i := range b.Len() {
		c := b.At(i)
		got = append(got, string(c.URL))
		w.known[string(c.URL)].id = slices.Clone(c.DocID)
		if rnd.IntN(2) == 0 {
			w.known[string(c.URL)].done = true
			o.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL})
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("step %d: take %d but %q =\n%q; want\n%q", step, max, reject, got, want)
	}
	if err := m.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
}
