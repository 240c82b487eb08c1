package crawlcontrol_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// fakeSlots hold what they are given, and send nothing.
type fakeSlots struct {
	held    map[string]bool // by URL; true: at a spider
	away    bool
	forgot  int
	batches []int
}

func (f *fakeSlots) Cancel(_ context.Context, o *docindex.Outcomes) (ended int, err error) {
	if f.away {
		return 0, errors.New("the daemon has stopped")
	}
	f.batches = append(f.batches, o.Len())
	for i := range o.Len() {
		if spider, held := f.held[string(o.At(i).URL)]; held && !spider {
			delete(f.held, string(o.At(i).URL))
			ended++
		}
	}
	return ended, nil
}

func (f *fakeSlots) Forget(o *docindex.Outcomes) { f.forgot += o.Len() }

func (f *fakeSlots) NotPending(_ context.Context, o *docindex.Outcomes) error {
	if f.away {
		return errors.New("the daemon has stopped")
	}
	for url, spider := range f.held {
		if spider {
			o.Add(docindex.Outcome{DocID: []byte("1"), URL: []byte(url)}) // the first document put
		}
	}
	return nil
}

func TestKeeper(t *testing.T) {
	store, slots := memory.New(), &fakeSlots{held: map[string]bool{"http://a.test/": true,
		"http://b.test/": false}}
	m := crawlcontrol.New(crawlcontrol.NewController(store, slots, zerolog.Nop()), 10)
	do := func(text string) (string, error) {
		t.Helper()
		replies, _, err := m.Do(t.Context(), [][]byte{[]byte(text)})
		if err != nil {
			return "", err
		}
		return string(replies[0].Body), nil
	}
	for _, host := range []string{"a", "b"} {
		if got, err := do(string(crawl(host))); err != nil || !strings.Contains(got, `"status":"new"`) {
			t.Fatalf("crawl: %s, %v", got, err)
		}
	}
	var b docindex.Batch
	if err := store.Candidates(t.Context(), 2, nil, &b); err != nil || b.Len() != 2 {
		t.Fatalf("%d candidates, %v", b.Len(), err)
	}
	if got, err := do(string(crawl("c"))); err != nil || !strings.Contains(got, `"status":"new"`) {
		t.Fatalf("crawl: %s, %v", got, err)
	}
	if got, err := do(infoText); err != nil || !strings.Contains(got, `"total_pending":2,`) {
		t.Errorf("info is %s, %v; want what is scheduled and what is in a slot", got, err)
	}
	slots.away = true
	if _, err := do(infoText); err == nil {
		t.Error("info without the daemon: no error")
	}
	if _, err := do(stopText); err == nil {
		t.Error("stop without the daemon: no error")
	}
	slots.away = false
	// the first try purged the store
	if got, err := do(stopText); err != nil || !strings.Contains(got, `"total_purged":2,`) {
		t.Errorf("stop is %s, %v; want what was in the store and the one in a slot", got, err)
	}
	if got, err := do(string(crawl("d"))); err != nil || !strings.Contains(got, `"status":"dropped"`) {
		t.Errorf("crawl after stop: %s, %v", got, err)
	}
	if _, err := store.Delete(t.Context(), docindex.Scope{Crawl: []byte("c1")}); err != nil ||
		slots.forgot != 2 {
		t.Errorf("%d forgotten by the slots, %v; want 2", slots.forgot, err)
	}
}

func TestNoticesComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		controller := crawlcontrol.NewController(store, &fakeSlots{}, zerolog.Nop())
		m := crawlcontrol.New(controller, 10)
		begin := time.Now()
		var mu sync.Mutex
		var notices []string
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			controller.Run(ctx, 10*time.Second, func(r crawlcontrol.Reply, _ func()) {
				mu.Lock()
				defer mu.Unlock()
				notices = append(notices, fmt.Sprintf("%v %s", time.Since(begin),
					r.Body[:strings.IndexByte(string(r.Body), ',')]))
			})
		}()
		for i := range 3 {
			text := fmt.Sprintf(`{"url":"http://a.test/%d","appid":"testapp","crawlid":"x%d","expires":%d}`,
				i, i, begin.Unix()+int64(20*i+5))
			if _, _, err := m.Do(ctx, [][]byte{[]byte(text)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := m.Do(ctx, [][]byte{crawl("b")}); err != nil {
			t.Fatal(err)
		}
		end(t, store, "http://b.test/")
		time.Sleep(time.Minute)
		cancel()
		<-ended
		want := []string{`5s {"action":"expired"`, `10s {"action":"completed"`, `25s {"action":"expired"`,
			`45s {"action":"expired"`}
		if !slices.Equal(notices, want) {
			t.Errorf("notices\n%q; want\n%q", notices, want)
		}
	})
}

// awayStore does not answer.
type awayStore struct{ *memory.Store }

func (awayStore) CrawlsToEnd(context.Context, time.Time, int) ([]docindex.CrawlEnd, error) {
	return nil, errStore
}

// TestStoreAway: while a store does not answer, Run logs that once a minute.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		controller := crawlcontrol.NewController(awayStore{memory.New()}, &fakeSlots{}, zerolog.New(&log))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute-time.Millisecond)
		defer cancel()
		controller.Run(ctx, time.Hour, func(r crawlcontrol.Reply, _ func()) { t.Errorf("notice %s", r.Body) })
		if n := strings.Count(log.String(), errStore.Error()); n != 10 {
			t.Errorf("%d lines in ten minutes; want 10:\n%.1000s", n, log.String())
		}
	})
}

// failingStore fails in a way that depends on when it is asked.
type failingStore struct {
	*memory.Store
	fails func() error
}

func (s failingStore) FinishedCrawls(context.Context, time.Time, int) ([]docindex.FinishedCrawl, error) {
	return nil, s.fails()
}

// TestStoreFailsInTwoWays: an error that comes within a minute after another one is logged, too. Those that
// differ in a number alone are one, and no more than ten are logged in a minute.
func TestStoreFailsInTwoWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		store := failingStore{memory.New(), func() error {
			switch passed := time.Since(began); {
			case passed < 20*time.Second:
				return fmt.Errorf("port %d: away", passed/time.Second)
			case passed < 40*time.Second:
				return errors.New("the disk is full")
			case passed < time.Minute:
				return fmt.Errorf("strange%s", strings.Repeat("!", int(passed/time.Second)))
			}
			return errStore
		}}
		var log strings.Builder
		controller := crawlcontrol.NewController(store, &fakeSlots{}, zerolog.New(&log))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute-time.Millisecond)
		defer cancel()
		controller.Run(ctx, time.Hour, func(r crawlcontrol.Reply, _ func()) { t.Errorf("notice %s", r.Body) })
		for text, want := range map[string]int{"away": 1 + 2, "the disk is full": 1, "strange": 8} {
			if n := strings.Count(log.String(), text); n != want {
				t.Errorf("%d lines have %q; want %d:\n%.2000s", n, text, want, log.String())
			}
		}
	})
}

// failingPurge is a store with one overdue crawl at a time that it cannot purge.
type failingPurge struct {
	*memory.Store
	overdue func() docindex.CrawlID
	fails   func() error
}

func (s failingPurge) CrawlsToEnd(context.Context, time.Time, int) ([]docindex.CrawlEnd, error) {
	return []docindex.CrawlEnd{{CrawlID: s.overdue()}}, nil
}

func (s failingPurge) StopCrawl(context.Context, docindex.CrawlID, docindex.Kind) error { return nil }

func (s failingPurge) PurgeCrawl(
	context.Context, docindex.CrawlID, func(*docindex.Outcomes) (int, error),
) (int, error) {
	return 0, s.fails()
}

// TestPurgesFail: the cause for which many crawls cannot be purged is logged once, and another cause, too.
// None of them is logged as purged.
func TestPurgesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		store := failingPurge{memory.New(), func() docindex.CrawlID {
			return docindex.CrawlID{App: "app", Crawl: strings.Repeat("c", int(time.Since(began)/time.Second)+1)}
		}, func() error {
			if time.Since(began) < 20*time.Second {
				return errors.New("the store is slow")
			}
			return errors.New("the disk is full")
		}}
		var log strings.Builder
		controller := crawlcontrol.NewController(store, &fakeSlots{}, zerolog.New(&log))
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		controller.Run(ctx, time.Hour, func(r crawlcontrol.Reply, _ func()) { t.Errorf("notice %s", r.Body) })
		for text, want := range map[string]int{"the store is slow": 1, "the disk is full": 1, "crawl purged": 0} {
			if n := strings.Count(log.String(), text); n != want {
				t.Errorf("%d lines have %q; want %d:\n%.2000s", n, text, want, log.String())
			}
		}
	})
}

// A stop that failed is tried again, although nobody asks for it. A later request gets the counts
// of all documents that it ended.
func TestStopFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, slots := memory.New(), &fakeSlots{held: map[string]bool{"http://b.test/": false}}
		controller := crawlcontrol.NewController(store, slots, zerolog.Nop())
		m := crawlcontrol.New(controller, 10)
		do := func(text string) (string, error) {
			replies, _, err := m.Do(t.Context(), [][]byte{[]byte(text)})
			if err != nil {
				return "", err
			}
			replies[0].Acknowledged(t.Context())
			return string(replies[0].Body), nil
		}
		for _, host := range []string{"b", "c", "d"} {
			if _, err := do(string(crawl(host))); err != nil {
				t.Fatal(err)
			}
		}
		var b docindex.Batch
		if err := store.Candidates(t.Context(), 1, nil, &b); err != nil || b.Len() != 1 ||
			string(b.At(0).URL) != "http://b.test/" {
			t.Fatalf("%d candidates, %v", b.Len(), err)
		}
		slots.away = true
		if got, err := do(stopText); err == nil {
			t.Errorf("stop without the daemon: %s", got)
		}
		slots.away = false
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() {
			controller.Run(ctx, time.Hour,
				func(r crawlcontrol.Reply, _ func()) { t.Errorf("notice %s", r.Body) })
		})
		time.Sleep(5 * time.Second)
		cancel()
		watching.Wait()
		if !slices.Equal(slots.batches, []int{1}) {
			t.Errorf("the slots were to end %d documents; want 1, once", slots.batches)
		}
		for _, want := range []string{`"total_purged":3,`, `"total_purged":0,`} {
			if got, err := do(stopText); err != nil || !strings.Contains(got, want) {
				t.Errorf("stop is %s, %v; want %s", got, err, want)
			}
		}
	})
}
