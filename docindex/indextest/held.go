package indextest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
)

var heldCases = []testCase{
	{"held: news of a full queue", heldFull},
	{"held: others wait for less", heldLess},
	{"held: nothing to wait for", heldNothing},
	{"held: a queue that another call is at", heldServed},
	{"held: the delay that follows", heldDelay},
	{"held: client goes away", heldBroken},
}

// oneEach requests at most one URL of each queue of the default crawl.
var oneEach = docindex.Request{PerQueue: 1, Lease: time.Minute}

// timed is call, and also returns how long it took.
func timed(t *testing.T, s docindex.Store, r docindex.Request) (all []string, took time.Duration) {
	t.Helper()
	began := time.Now()
	all = call(t, s, r)
	return all, time.Since(began)
}

// endedIn reports a URL as completed after d, in the background.
func endedIn(t *testing.T, s docindex.Store, d time.Duration, text string) {
	t.Helper()
	var p docindex.Puts
	if err := p.AddExact(docindex.Put{URL: []byte(text), Update: true, Due: docindex.Never},
		docindex.HostOf([]byte(text))); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	time.AfterFunc(d, func() {
		if _, err := s.Put(ctx, &p); err != nil {
			t.Errorf("Put: %v", err)
		}
	})
}

func heldFull(t *testing.T, s docindex.Store) {
	set(t, s, docindex.SetDelay, "", 0)
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4", "http://a.test/5")...)
	wantURLs(t, call(t, s, oneEach), "http://a.test/1")
	byKey, anyCrawl := oneEach, oneEach
	byKey.Key, anyCrawl.AnyCrawl = []byte("a.test"), true
	for i, r := range []docindex.Request{oneEach, byKey, anyCrawl} {
		endedIn(t, s, 5*time.Millisecond, fmt.Sprintf("http://a.test/%d", i+1))
		got, took := timed(t, s, r)
		wantURLs(t, got, fmt.Sprintf("http://a.test/%d", i+2))
		if took != 5*time.Millisecond {
			t.Errorf("call %d took %v; want 5ms, when there was news", i, took)
		}
	}
	got, took := timed(t, s, oneEach)
	wantURLs(t, got)
	if took == 0 || took > 100*time.Millisecond {
		t.Errorf("without news a call took %v; want a moment", took)
	}
	wantStates(t, s, 1, 1, 3)
}

// heldLess runs two calls that wait for the same queue. The one with the lower limit of URLs in
// transit must not keep the other from its URL.
func heldLess(t *testing.T, s docindex.Store) {
	set(t, s, docindex.SetDelay, "", 0)
	var all []string
	for i := range 10 {
		all = append(all, fmt.Sprintf("http://a.test/%d", i))
	}
	add(t, s, urls(all...)...)
	most := func(n uint32) docindex.Request { return docindex.Request{PerQueue: n, Lease: time.Minute} }
	wantURLs(t, call(t, s, most(7)), all[:7]...)
	less := make(chan []string, 1)
	time.AfterFunc(time.Millisecond, func() {
		byKey := most(3)
		byKey.Key = []byte("a.test")
		less <- call(t, s, byKey)
	})
	for _, text := range all[:3] {
		endedIn(t, s, 5*time.Millisecond, text)
	}
	got, took := timed(t, s, most(5))
	wantURLs(t, got, all[7])
	if took != 5*time.Millisecond {
		t.Errorf("a call took %v; want 5ms, when there was news", took)
	}
	wantURLs(t, <-less)
}

func heldNothing(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2")...)
	add(t, s, docindex.Put{URL: []byte("http://b.test/1"), Crawl: []byte("c")})
	wantURLs(t, call(t, s, oneEach), "http://a.test/1")
	other, unknown, byKey := oneEach, oneEach, oneEach
	other.Crawl, unknown.Crawl, byKey.Key = []byte("c"), []byte("d"), []byte("b.test")
	wantURLs(t, call(t, s, other), "http://b.test/1")
	time.Sleep(time.Second) // the delay of a.test has passed, but it has as many URLs in transit as the call allows
	for name, r := range map[string]docindex.Request{"of another crawl": other, "of no crawl": unknown,
		"of no queue": byKey} {
		if got, took := timed(t, s, r); len(got) > 0 || took > 0 {
			t.Errorf("a call %s got %q after %v; want nothing at once", name, got, took)
		}
	}
	ended(t, s, "http://a.test/1")
	wantURLs(t, call(t, s, oneEach), "http://a.test/2")
	if got, took := timed(t, s, oneEach); len(got) > 0 || took > 0 {
		t.Errorf("where all is given out, a call got %q after %v; want nothing at once", got, took)
	}
}

// during starts a second call while the first one is between two portions of a.test. It returns
// what both got.
func during(t *testing.T, s docindex.Store) (first, second []string) {
	for i := range 1500 {
		add(t, s, docindex.Put{URL: fmt.Appendf(nil, "http://a.test/%d", i)})
	}
	ended := make(chan []string, 1)
	portions := 0
	err := s.Serve(t.Context(), docindex.Request{PerQueue: 1200, Lease: time.Minute}, func(h *docindex.Served) error {
		for i := range h.Len() {
			first = append(first, string(h.At(i).URL))
		}
		if portions++; portions == 1 {
			go func() { ended <- call(t, s, any) }()
			synctest.Wait()
		}
		return nil
	})
	if err != nil || portions != 2 {
		t.Errorf("Serve gave %d portions, %v; want 2", portions, err)
	}
	return first, <-ended
}

func heldServed(t *testing.T, s docindex.Store) {
	set(t, s, docindex.SetDelay, "", 0)
	first, second := during(t, s)
	if len(first) != 1200 || len(second) != 300 ||
		slices.ContainsFunc(second, func(u string) bool { return slices.Contains(first, u) }) {
		t.Errorf("the calls got %d and %d URLs; want 1200, and the other 300", len(first), len(second))
	}
}

func heldDelay(t *testing.T, s docindex.Store) {
	first, second := during(t, s)
	if len(first) != 1200 || len(second) != 0 {
		t.Errorf("the calls got %d and %d URLs; want 1200, and none within the delay", len(first), len(second))
	}
}

func heldBroken(t *testing.T, s docindex.Store) {
	set(t, s, docindex.SetDelay, "", 0)
	add(t, s, urls("http://a.test/1", "http://a.test/2")...)
	wantURLs(t, call(t, s, oneEach), "http://a.test/1")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := s.Serve(ctx, oneEach, func(*docindex.Served) error { return errors.New("there is nothing to give") })
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Millisecond {
		t.Errorf("Serve = %v after %v; want the client's deadline", err, took)
	}
}
