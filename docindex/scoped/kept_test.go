package scoped_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/redis"
	"urlserver/docindex/scoped"
	"urlserver/internal/scope"
	"urlserver/internal/testkit/redistest"
)

// life opens the store in a folder, does something with it, and ends it as the daemon does.
func life(t *testing.T, path string, do func(s *scoped.Store)) {
	t.Helper()
	within, err := disk.Open(disk.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	lifeOf(t, within, do)
}

// lifeOf does something with a store, and ends it.
func lifeOf(t *testing.T, within closer, do func(s *scoped.Store)) {
	t.Helper()
	s := scoped.New(within)
	s.SetBudget(10)
	do(s)
	ctx, end := context.WithCancel(t.Context())
	end()
	s.Run(ctx, zerolog.Nop())
	if err := within.Close(); err != nil {
		t.Fatal(err)
	}
}

type closer interface {
	docindex.Store
	Close() error
}

// What the scope of a crawl has refused counts after a restart, until the crawl is deleted.
func TestCountsOutliveARestart(t *testing.T) {
	path := t.TempDir()
	refused := func(s *scoped.Store) string {
		i, err := s.Crawl(t.Context(), "c")
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(i.Refused[scope.Deny], i.Refused[scope.Depth], i.OutOfScope())
	}
	deep := docindex.Put{URL: []byte("http://a.test/y"), Crawl: []byte("c"), Depth: 2}
	life(t, path, func(s *scoped.Store) {
		set(t, s, "c", `{"deny":["x"],"max_depth":1}`)
		put(t, s, append(of("c", "http://a.test/x", "http://a.test/xx"), deep)...)
		if err := s.StopCrawlID(t.Context(), "stopped"); err != nil {
			t.Fatal(err)
		}
		put(t, s, of("stopped", "http://a.test/")...)
	})
	life(t, path, func(s *scoped.Store) {
		if got := refused(s); got != "2 1 3" {
			t.Errorf("after a restart refused: %s; want 2 1 3", got)
		}
		if i, err := s.Crawl(t.Context(), "stopped"); err != nil || i.Dropped != 1 {
			t.Errorf("of the stopped crawl: %+v, %v; want one dropped", i, err)
		}
		put(t, s, deep)
	})
	life(t, path, func(s *scoped.Store) {
		if got := refused(s); got != "2 2 4" {
			t.Errorf("after two restarts refused: %s; want 2 2 4", got)
		}
		if _, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("c")}); err != nil {
			t.Fatal(err)
		}
	})
	life(t, path, func(s *scoped.Store) {
		set(t, s, "c", `{"deny":["x"]}`)
		if got := refused(s); got != "0 0 0" {
			t.Errorf("of a new crawl with an old ID refused: %s; want none", got)
		}
	})
}

// A domain that is over its budget waits after a restart as long as it would have without it.
func TestRoundsOutliveARestart(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		path := t.TempDir()
		roundsOutlive(t, func(do func(*scoped.Store)) { life(t, path, do) })
	})
	t.Run("redis", func(t *testing.T) {
		addr := redistest.Start(t).Addr()
		roundsOutlive(t, func(do func(*scoped.Store)) {
			lifeOf(t, redis.New(redis.Config{Addrs: []string{addr}, Lease: time.Minute, Janitor: time.Minute}), do)
		})
	})
}

func roundsOutlive(t *testing.T, life func(do func(*scoped.Store))) {
	wait := func(s *scoped.Store) docindex.Wait {
		t.Helper()
		of, err := s.HostStatus(t.Context(), []byte("h99.a.example"))
		if err != nil {
			t.Fatal(err)
		}
		return of.AtSlots.Wait
	}
	fetch := func(s *scoped.Store, n int) (urls []string) {
		t.Helper()
		var b docindex.Batch
		var o docindex.Outcomes
		if err := s.Candidates(t.Context(), n, nil, &b); err != nil || b.Len() != n {
			t.Fatalf("%d candidates, %v; want %d", b.Len(), err, n)
		}
		for i := range b.Len() {
			urls = append(urls, string(b.At(i).URL))
			o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200})
		}
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		return urls
	}
	var before docindex.Wait
	var rounds []docindex.Round
	life(func(s *scoped.Store) {
		var urls []string
		for i := range 100 {
			urls = append(urls, fmt.Sprintf("http://h%d.a.example/", i))
		}
		for i := range 60 {
			urls = append(urls, fmt.Sprintf("http://b%d.example/%d", i%5, i))
		}
		put(t, s, of("", urls...)...)
		fetch(s, 13)
		before = wait(s)
		if before.Rule != docindex.WaitOverBudget || before.Round != 2 || before.Count == 0 {
			t.Fatalf("it waits: %+v; want over its budget", before)
		}
		rounds = s.Rounds()
	})
	life(func(s *scoped.Store) {
		if _, err := s.Crawl(t.Context(), "DEFAULT"); err != nil { // the first call
			t.Fatal(err)
		}
		if got := wait(s); got != before {
			t.Errorf("after a restart it waits: %+v; want %+v", got, before)
		}
		if got := s.Rounds(); !slices.Equal(got, rounds) {
			t.Errorf("after a restart rounds are %+v; want %+v", got, rounds)
		}
		s.SetBudget(10) // as a reload does
		if got := wait(s); got != before {
			t.Errorf("after a reload it waits: %+v; want %+v", got, before)
		}
		for _, url := range fetch(s, int(before.Count)) {
			if docindex.HostOf([]byte(url))[0] != 'b' {
				t.Errorf("%s is handed out while its domain waits", url)
			}
		}
		s.SetBudget(11)
		if got := wait(s); got != (docindex.Wait{}) {
			t.Errorf("with another budget it waits: %+v", got)
		}
	})
}
