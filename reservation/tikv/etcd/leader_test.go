package etcd

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/tikv/etcd/etcdtest"
)

const (
	leaderHosts = 40
	leaderLease = 5 * time.Second
	patience    = 5 * time.Minute // for what takes seconds on an idle machine
)

// watcher checks that no group is reserved twice at a time, and that tokens grow.
type watcher struct {
	t      *testing.T
	mu     sync.Mutex           // guards all below
	until  map[string]time.Time // by group: until when the holder relies on its lease
	tokens map[string]uint64
	given  int
	more   chan struct{} // signals a reservation
}

// took records a reservation that was requested at asked. A result that arrives too late to be used
// does not count: another caller may have had the group meanwhile.
func (w *watcher) took(r reservation.Reservation, asked time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(asked) >= leaderLease {
		return
	}
	if left := time.Until(w.until[r.Group]); left > 0 {
		w.t.Errorf("%s is given under %d while %d has it for another %v", r.Group, r.Token, w.tokens[r.Group], left)
	}
	if r.Token <= w.tokens[r.Group] {
		w.t.Errorf("%s is given under %d after %d", r.Group, r.Token, w.tokens[r.Group])
	}
	w.until[r.Group], w.tokens[r.Group] = asked.Add(leaderLease), r.Token
	w.given++
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *watcher) gives(r reservation.Reservation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.until, r.Group)
}

// await waits for n more reservations.
func (w *watcher) await(more int) {
	w.t.Helper()
	w.mu.Lock()
	want := w.given + more
	w.mu.Unlock()
	for timeout := time.After(patience); ; {
		w.mu.Lock()
		done := w.given >= want
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-w.more:
		case <-timeout:
			w.t.Fatal("nothing is reserved any more")
		}
	}
}

// crawl reserves and releases until the test ends.
func (w *watcher) crawl(s *Store, name string, over chan struct{}) {
	for {
		select {
		case <-over:
			return
		default:
		}
		asked := time.Now()
		list, err := s.ReserveNextHost(w.t.Context(), leaderLease, 2, name)
		if err != nil {
			continue // nothing is due, or there is no leader
		}
		for _, r := range list {
			w.took(r, asked)
		}
		for _, r := range list {
			w.gives(r)
			if err := s.ReleaseHost(w.t.Context(), r.Host, r.Token, time.Time{}); err != nil {
				continue // it may be released; if not, its lease ends
			}
			if err := s.ReleaseHost(w.t.Context(), r.Host, r.Token, time.Time{}); err == nil {
				w.t.Errorf("ReleaseHost(%s, %d) was taken a second time", r.Host, r.Token)
			}
		}
	}
}

// TestLeaderKilled kills leaders while crawlers reserve through two services. No group is ever
// reserved twice, reservations go on after each kill, and no host is lost.
func TestLeaderKilled(t *testing.T) {
	cluster := etcdtest.Start(t, 3)
	var stores []*Store
	for range 2 {
		s, err := New(Config{Addrs: cluster.Addrs(), Penalty: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores = append(stores, s)
	}
	calls, aliased := []reservation.Call{}, []string{}
	for i := range leaderHosts {
		calls = append(calls, reservation.Call{Verb: reservation.AddHost, Host: fmt.Sprintf("h%d.test", i)})
		if i%4 == 0 {
			aliased = append(aliased, calls[i].Host)
		}
	}
	eventually(t, func() error {
		var errs []error
		for _, a := range stores[0].Do(t.Context(), calls) {
			errs = append(errs, a.Err)
		}
		return errors.Join(errs...)
	})
	eventually(t, func() error { return stores[1].SetAlias(t.Context(), "it", aliased) })
	w := &watcher{t: t, until: map[string]time.Time{}, tokens: map[string]uint64{}, more: make(chan struct{}, 1)}
	over := make(chan struct{})
	var crawlers sync.WaitGroup
	for i := range 8 {
		crawlers.Go(func() { w.crawl(stores[i%2], fmt.Sprint("crawler ", i), over) })
	}
	kills := 3
	if testing.Short() {
		kills = 1
	}
	for range kills {
		w.await(100)
		leader := cluster.Leader()
		cluster.Kill(leader)
		w.await(100)
		cluster.Restart(leader)
	}
	close(over)
	crawlers.Wait()
	t.Logf("%d reservations, %d leaders killed", w.given, kills)
	servesAll(t, stores[0])
}

// eventually repeats a call until it succeeds. Calls fail while there is no leader, which on a busy
// machine may be at any time.
func eventually(t *testing.T, do func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// servesAll checks that every host can be reserved again, now or when a lost lease has ended.
func servesAll(t *testing.T, s *Store) {
	served := map[string]bool{}
	for deadline := time.Now().Add(patience); len(served) < leaderHosts; {
		if time.Now().After(deadline) {
			t.Fatalf("only %d of %d hosts are ever served again", len(served), leaderHosts)
		}
		if err := s.Sweep(t.Context()); err != nil {
			t.Logf("Sweep: %v", err)
		}
		list, err := s.ReserveNextHost(t.Context(), leaderLease, leaderHosts, "last")
		if errors.Is(err, reservation.ErrNotNow) {
			time.Sleep(50 * time.Millisecond) // a pause between two calls
		}
		for _, r := range list {
			served[r.Host] = true
			if err := s.DeleteHost(t.Context(), r.Host, r.Token, time.Time{}); err != nil {
				t.Logf("DeleteHost(%s): %v", r.Host, err)
			}
		}
	}
}
