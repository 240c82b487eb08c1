package indextest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"urlserver/docindex"
)

func turns(t *testing.T, s docindex.Store) {
	put(t, s, urls(
		"http://big.example/1", "http://big.example/2", "http://big.example/3", "http://big.example/4",
		"http://small.example/1", "https://other.example:8443/1", "https://other.example/2",
	)...)
	wantTexts(t, take(t, s, 4),
		"http://big.example/1", "http://small.example/1", "https://other.example:8443/1", "http://big.example/2")
	put(t, s, urls("http://late.example/1")...)
	wantTexts(t, take(t, s, 10),
		"https://other.example/2", "http://big.example/3", "http://late.example/1", "http://big.example/4")
}

// priorities puts URLs with sequences of priorities that an implementation may treat specially.
func priorities(t *testing.T, s docindex.Store) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name     string
		priority func(i int) int32
	}{
		{"same", func(int) int32 { return 3 }},
		{"falling", func(i int) int32 { return int32(-i) }},
		{"rising", func(i int) int32 { return int32(i) }},
		{"taking turns", func(i int) int32 { return int32(i % 3) }},
		{"any", func(int) int32 { return int32(rnd.Uint32()) }},
	} {
		t.Run(c.name, func(t *testing.T) { onePriority(t, s, c.name, c.priority) })
	}
}

func onePriority(t *testing.T, s docindex.Store, name string, priority func(i int) int32) {
	var puts []docindex.Put
	for i := range 1000 {
		url := fmt.Appendf(nil, "http://a.example/%d?%s", i, name[:3])
		puts = append(puts, docindex.Put{URL: url, Priority: priority(i)})
	}
	put(t, s, puts...)
	slices.SortStableFunc(puts, func(a, b docindex.Put) int { return -cmp.Compare(a.Priority, b.Priority) })
	var want []string
	for _, p := range puts {
		want = append(want, string(p.URL))
	}
	wantTexts(t, take(t, s, 2000), want...)
}

func reject(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1", "http://a.example/2", "http://b.example/1", "http://b.example/2",
		"http://[::1]/1", "http://c.example/2")...)
	wantTexts(t, take(t, s, 2, "b.example", "unknown.example", "::1"), "http://a.example/1", "http://c.example/2")
	// The host became first in order while it was rejected, so it is served first now.
	wantTexts(t, take(t, s, 2), "http://b.example/1", "http://[::1]/1")
	// It stays left out, however often candidates are requested.
	for range 3 {
		wantTexts(t, take(t, s, 10, "a.example", "b.example", "a.example"))
	}
	wantTexts(t, take(t, s, 10, "a.example"), "http://b.example/2")
	wantTexts(t, take(t, s, 10), "http://a.example/2")
}

func inTransit(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1", "http://a.example/2")...)
	first := take(t, s, 1)
	wantStates(t, s, 1, 1, 0)
	wantTexts(t, take(t, s, 10), "http://a.example/2")
	wantTexts(t, take(t, s, 10))
	wantStates(t, s, 0, 2, 0)
	end(t, s, first)
	wantStates(t, s, 0, 1, 1)
	end(t, s, first) // a second time changes nothing
	wantStates(t, s, 0, 1, 1)
	if got := s.Stats().Outcomes[docindex.Done]; got != 1 {
		t.Errorf("%d done; want 1", got)
	}
}

func strangeOutcomes(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1")...)
	id := take(t, s, 1).At(0).DocID
	var o docindex.Outcomes
	for _, strange := range []string{"", "0", "01", "2", "x", "4294967297", "18446744073709551617", "-1", "1 "} {
		o.Add(docindex.Outcome{DocID: []byte(strange)})
	}
	// The right DOC_ID with another URL: an index that no longer exists gave the document out.
	o.Add(docindex.Outcome{DocID: id, URL: []byte("http://a.example/other")})
	report(t, s, &o)
	wantStates(t, s, 0, 1, 0)

	o.Reset()
	o.Add(docindex.Outcome{DocID: id, Kind: docindex.Robots})
	report(t, s, &o)
	wantStates(t, s, 0, 0, 1)
	if got := s.Stats().Outcomes[docindex.Robots]; got != 1 {
		t.Errorf("%d robots; want 1", got)
	}
}

// earlyOutcome completes scheduled documents. The store must not give them out, whatever their
// place in the queue.
func earlyOutcome(t *testing.T, s docindex.Store) {
	var puts []docindex.Put
	for i := range 5 {
		puts = append(puts, docindex.Put{
			URL: fmt.Appendf(nil, "http://a.example/%d", i), DocID: fmt.Appendf(nil, "id%d", i),
		})
	}
	put(t, s, puts...)
	var o docindex.Outcomes
	for _, id := range []string{"id0", "id2", "id4"} {
		o.Add(docindex.Outcome{DocID: []byte(id), Kind: docindex.Stopped})
	}
	report(t, s, &o)
	wantStates(t, s, 2, 0, 3)
	put(t, s, urls("http://a.example/5")...)
	wantTexts(t, take(t, s, 10), "http://a.example/1", "http://a.example/3", "http://a.example/5")
	wantStates(t, s, 0, 3, 3)
}

func notify(t *testing.T, s docindex.Store) {
	woken := make(chan string, 4)
	s.OnWake(func() { woken <- "first" })
	s.OnWake(func() { woken <- "second" })
	put(t, s, urls("http://a.example/")...)
	if a, b := <-woken, <-woken; a == b {
		t.Errorf("woken twice by %s; want both", a)
	}
	put(t, s, urls("http://a.example/")...)
	if len(woken) != 0 {
		t.Error("woken by a URL that was known")
	}
}

// concurrent puts, takes and ends in several goroutines. Each document must be given out exactly
// once.
func concurrent(t *testing.T, s docindex.Store) {
	const workers, each = 4, 500
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for w := range workers {
		all.Go(func() {
			for i := range each {
				b, err := round(t.Context(), s, fmt.Sprintf("http://h%d.example/%d", i%7, i),
					fmt.Sprintf("http://w%d.example/%d", w, i))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, text := range texts(b) {
					seen[text]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for _, text := range texts(take(t, s, 1_000_000)) {
		seen[text]++
	}
	if want := each + workers*each; len(seen) != want {
		t.Errorf("%d URLs were handed out; want %d", len(seen), want)
	}
	for text, n := range seen {
		if n != 1 {
			t.Errorf("%s was handed out %d times", text, n)
		}
	}
}

// round puts URLs, takes three and ends them.
func round(ctx context.Context, s docindex.Store, texts ...string) (*docindex.Batch, error) {
	var p docindex.Puts
	var b docindex.Batch
	var o docindex.Outcomes
	for _, u := range urls(texts...) {
		if err := p.Add(u); err != nil {
			return &b, err
		}
	}
	_, err := s.Put(ctx, &p)
	if err == nil {
		err = s.Candidates(ctx, 3, nil, &b)
	}
	for i := range b.Len() {
		o.Add(docindex.Outcome{DocID: b.At(i).DocID})
	}
	return &b, errors.Join(err, s.Outcomes(ctx, &o))
}
