package disk

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
)

// rowsOfKind counts the rows of a kind.
func rowsOfKind(t *testing.T, s *Store, kind byte) (n int) {
	t.Helper()
	if err := s.db.each(kind, func(_, _ []byte) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// openCold opens a store that keeps no queue in memory without need.
func openCold(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(Config{Path: path, Sync: None, Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// putFresh puts a URL on each of some new hosts, in three crawls.
func putFresh(t *testing.T, s *Store, from, to int) (hosts []string) {
	t.Helper()
	crawls := []string{"one", "two", "three"}
	var p docindex.Puts
	for i := from; i < to; i++ {
		hosts = append(hosts, fmt.Sprintf("h%d.test", i))
		if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/", i),
			Crawl: []byte(crawls[min(i/50, 2)])}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	return hosts
}

// fetchHosts has n URLs fetched, and returns their hosts.
func fetchHosts(t *testing.T, s *Store, n int, again int64) (hosts []string) {
	t.Helper()
	for len(hosts) < n {
		var b docindex.Batch
		var o docindex.Outcomes
		if err := s.Candidates(t.Context(), 10, nil, &b); err != nil || b.Len() == 0 {
			t.Fatal(b.Len(), err)
		}
		for i := range b.Len() {
			hosts = append(hosts, string(docindex.HostOf(b.At(i).URL)))
			o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200, Again: again})
		}
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
	}
	return hosts
}

// TestFreshAtOnce puts URLs on new hosts while the clock does not move: a commit may follow within a
// millisecond. A new queue has one row then, too.
func TestFreshAtOnce(t *testing.T) {
	s, err := Open(Config{Path: t.TempDir(), Sync: None, Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.base.SetClock(func() time.Duration { return time.Minute })
	putFresh(t, s, 0, 300)
	if n := rowsOfKind(t, s, freshRow); n != 300 {
		t.Errorf("of 300 new queues %d have one row; want all", n)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestFresh puts URLs on new hosts without memory for queues. A new queue has one row for itself, in
// place of two. Queues come by how long they have waited, whichever rows they have.
func TestFresh(t *testing.T) {
	path := t.TempDir()
	s := openCold(t, path)
	all := putFresh(t, s, 0, 300)
	fresh, rest := rowsOfKind(t, s, freshRow), rowsOfKind(t, s, queueRow)+rowsOfKind(t, s, wakeRow)
	if fresh != 300 || rest != 0 {
		t.Errorf("300 new queues have %d and %d rows; want 300 and none", fresh, rest)
	}
	var ids [][]byte
	if err := s.List(t.Context(), docindex.Scope{Crawl: []byte("two")}, func(d *docindex.Document) bool {
		ids = append(ids, slices.Clone(d.DocID))
		return true
	}); err != nil || len(ids) != 50 {
		t.Errorf("%d documents of the second crawl, %v; want 50", len(ids), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openCold(t, path)
	for _, id := range ids {
		if _, err := s.Document(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if n, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("one")}); n != 50 || err != nil {
		t.Errorf("%d documents are deleted, %v; want 50", n, err)
	}
	if n, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("two")}); n != 50 || err != nil {
		t.Errorf("%d documents are deleted, %v; want 50", n, err)
	}
	first := fetchHosts(t, s, 100, 1)
	last := putFresh(t, s, 300, 350)
	got := append(first, fetchHosts(t, s, 250, 0)...)
	if want := slices.Concat(all[100:], all[100:200], last); !slices.Equal(got, want) {
		t.Errorf("after %q come others than %q", first, want[100:])
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if n := rowsOfKind(t, s, freshRow); n != 0 {
		t.Errorf("%d queues have the row of a new one", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPlaceAfterReopen opens a store whose queues have all lost their first rows. The first search for
// queues passes what was deleted; the next ones do not pass it again.
func TestPlaceAfterReopen(t *testing.T) {
	path := t.TempDir()
	s := openCold(t, path)
	putFresh(t, s, 100, 600) // all in the third crawl
	fetchHosts(t, s, 500, 1)
	fetchHosts(t, s, 500, s.base.Now()/1000+3600)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openCold(t, path)
	t.Cleanup(func() { s.Close() })
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	crawl, _ := s.base.Sched.FindCrawl([]byte("three"))
	search := func() (steps int) {
		w, err := s.queues.cold.wait(crawl)
		if err != nil {
			t.Fatal(err)
		}
		defer w.close()
		for _, it := range []*pebble.Iterator{w.wakes, w.fresh} {
			stats := it.Stats()
			steps += stats.ForwardStepCount[pebble.InternalIterCall]
		}
		return steps
	}
	if first, second := search(), search(); second > 10 {
		t.Errorf("the first search takes %d steps, the second %d; want at most 10", first, second)
	}
}
