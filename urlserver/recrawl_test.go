package urlserver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/recrawl"
)

// refetching starts a daemon whose documents are scheduled again, on the same hosts as others that
// are fetched once.
func refetching(t *testing.T, rule recrawl.Rule, urls ...string) (*bubble, docindex.Store) {
	t.Helper()
	store := recrawl.New(memory.New(), rule)
	put(t, store, urls...)
	return (&bubble{t: t}).start(nil, Parts{Index: store, Store: store}), store
}

// TestRefetch checks that a document is scheduled again after the time for its status: no sooner,
// and at most the pause between two requests to the index later.
func TestRefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := refetching(t, recrawl.Rule{OK: 10 * time.Minute, Error: 2 * time.Minute}, "http://10.0.0.1/")
		defer b.stopped()
		most := configs.Default().DocIndex.MaxRetry + time.Second // due times are whole seconds
		s := b.spider()
		trans, id := s.line()
		for _, c := range []struct {
			answer string
			wait   time.Duration
		}{
			{answer: "DONE", wait: 10 * time.Minute},
			{answer: "DONE 200", wait: 10 * time.Minute},
			{answer: "DONE 304", wait: 15 * time.Minute},
			{answer: "DONE 0", wait: 2 * time.Minute},
			{answer: "DONE 503", wait: 4 * time.Minute},
			{answer: "DONE 304", wait: 22*time.Minute + 30*time.Second},
			{answer: "DONE 500 7", wait: 2 * time.Minute},
		} {
			s.say("%s %s", trans, c.answer)
			done := time.Now()
			again := ""
			if trans, again = s.line(); again != id {
				t.Fatalf("document %s is sent; want %s", again, id)
			}
			if wait := time.Since(done); wait < c.wait || wait > c.wait+most {
				t.Errorf("after %s it is sent in %v; want %v, and at most %v more", c.answer, wait, c.wait, most)
			}
		}
		s.say("%s DONE 404", trans)
		synctest.Wait()
		time.Sleep(1000 * time.Hour)
		st, _ := b.d.Status(t.Context())
		if kept := store.Stats(); st.Sent != 8 || kept.Completed != 1 || kept.Outcomes[docindex.Done] != 8 {
			t.Errorf("it was sent %d times, and the store has %+v; want 8 outcomes, and it completed", st.Sent, kept)
		}
	})
}

// TestRefetchKeepsThePace schedules all documents of a host again at once and for ever. The host is
// not requested more often than before, and the documents take turns.
func TestRefetchKeepsThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []string
		for i := range 20 {
			urls = append(urls, fmt.Sprintf("http://10.0.0.1/%d", i))
		}
		b, store := refetching(t, recrawl.Rule{OK: time.Second}, urls...)
		s := b.spider()
		sent := map[string]int{}
		last := time.Time{}
		for range 200 {
			trans, id := s.line()
			if gap := time.Since(last); gap < time.Second { // Req_Host_Per_Sec of bubbleConfig
				t.Fatalf("document %s is sent %v after the last; want a second", id, gap)
			}
			last = time.Now()
			sent[id]++
			s.say("%s DONE 200", trans)
		}
		synctest.Wait()
		b.stopped()
		for _, n := range sent {
			if len(sent) != len(urls) || n < 9 || n > 11 {
				t.Fatalf("sent are %v; want each of %d about as often", sent, len(urls))
			}
		}
		if st := store.Stats(); st.Outcomes[docindex.Done] != 200 || st.Completed != 0 {
			t.Errorf("the store has %+v; want 200 outcomes, and nothing completed", st)
		}
	})
}

// TestRefetchAfterTimeout has no spider that answers. A document that ends as timeout is scheduled
// again like one that fails.
func TestRefetchAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := refetching(t, recrawl.Rule{Error: time.Hour}, "http://10.0.0.1/")
		defer b.stopped()
		cfg := configs.Default()
		ended := time.Time{}
		for turn, wait := range []time.Duration{0, time.Hour, 2 * time.Hour} {
			for i := range cfg.Spider.MaxAttempts {
				s := b.spider()
				s.line()
				if got := time.Since(ended); i == 0 && got < wait {
					t.Errorf("turn %d begins %v after the last one ended; want %v at least", turn, got, wait)
				}
				s.closed()
			}
			ended = time.Now()
			time.Sleep(time.Second)
			if n := store.Stats().Outcomes[docindex.Timeout]; n != turn+1 {
				t.Fatalf("%d outcomes are timeout after turn %d", n, turn)
			}
		}
	})
}
