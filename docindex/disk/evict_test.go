package disk_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
)

// memoryVar sets the memory for queues of the stores that the tests of this package open.
const memoryVar = "DISK_MEMORY"

func memoryOfTests() int64 {
	n, _ := strconv.ParseInt(os.Getenv(memoryVar), 10, 64)
	return n
}

// TestWithoutMemory runs tests of whole stores with no memory for queues: each commit evicts all queues
// that may be evicted.
func TestWithoutMemory(t *testing.T) {
	runWithMemory(t, 1, "^Test(Store|Twin|Crash|Reopen|Upgrade|OldVersion|DueLater.*|DeleteCrawl|Crawl.*|Purge.*)$")
}

// TestLittleMemory runs some of them with memory for a few queues.
func TestLittleMemory(t *testing.T) { runWithMemory(t, 40_000, "^Test(Twin|Reopen)$") }

// TestBudgetsWithLittleMemory runs most tests of budgets with stores that have memory for some hundred
// queues. In the one that is left out, a domain of generated names has far more queues than that.
func TestBudgetsWithLittleMemory(t *testing.T) {
	runWithMemory(t, 1_000_000, "^TestBudgets$/(told|nobody|big|clients|few|fill|beside)")
}

// TestOverBudgetWithoutMemory: a crawl all of whose domains wait has its turns, though all its queues are
// evicted and those of other domains are needed before them.
func TestOverBudgetWithoutMemory(t *testing.T) { runWithMemory(t, 1, "^TestBudgets$/beside") }

// runWithMemory runs tests of this package, in short form, with so much memory for queues, in bytes.
func runWithMemory(t *testing.T, memory int, which string) {
	if memoryOfTests() != 0 {
		t.Skip("this is the run that such a test starts")
	}
	cmd := exec.Command(os.Args[0], "-test.run="+which, "-test.short", "-test.timeout=9m")
	cmd.Env = append(os.Environ(), memoryVar+"="+strconv.Itoa(memory))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("with %d bytes of memory for queues: %v\n%s", memory, err, out)
	}
}

// openSmall opens a store without memory for queues.
func openSmall(t *testing.T, path string) *disk.Store {
	t.Helper()
	s, err := disk.Open(disk.Config{Path: path, Sync: disk.None, Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// putHosts puts a page on each of many hosts.
func putHosts(t *testing.T, s *disk.Store, hosts int, page string) {
	t.Helper()
	var p docindex.Puts
	for i := range hosts {
		if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://www.host-%d.test/%s", i, page)}); err != nil {
			t.Fatal(err)
		}
	}
	if res, err := s.Put(t.Context(), &p); err != nil || res.New != hosts {
		t.Fatal(res, err)
	}
}

// TestEvictedOnce puts URLs on new hosts with and without memory for queues: a queue's rows are
// written once.
func TestEvictedOnce(t *testing.T) {
	const hosts = 10_000
	large := open(t, t.TempDir(), disk.None)
	before := large.Logged()
	putHosts(t, large, hosts, "a")
	once := large.Logged() - before
	small := openSmall(t, t.TempDir())
	before = small.Logged()
	putHosts(t, small, hosts, "a")
	if n := small.QueuesInMemory(); n > hosts/2 {
		t.Errorf("%d of %d queues are in memory", n, hosts)
	}
	if wrote := small.Logged() - before; wrote > once*11/10 {
		t.Errorf("without memory for queues %d bytes are written; %d with memory", wrote, once)
	}
}

// TestOpenLoadsNothing opens a store that was closed, whose last commits have changed all queues.
func TestOpenLoadsNothing(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.None)
	putHosts(t, s, 10_000, "a")
	putHosts(t, s, 10_000, "b")
	s = again(t, s, path)
	if n := s.QueuesInMemory(); n > 0 {
		t.Errorf("%d queues are in memory; want none", n)
	}
}

// TestLookingEvicts looks at all queues with calls that change nothing.
func TestLookingEvicts(t *testing.T) {
	const hosts = 2000
	s := openSmall(t, t.TempDir())
	putHosts(t, s, hosts, "a")
	if _, err := s.Purge(t.Context(), docindex.Scope{}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if n := s.QueuesInMemory(); n > hosts/2 {
		t.Errorf("after a purge %d of %d queues are in memory", n, hosts)
	}
	if err := s.List(t.Context(), docindex.Scope{}, func(*docindex.Document) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if n := s.QueuesInMemory(); n > hosts/2 {
		t.Errorf("after listing all, %d of %d queues are in memory", n, hosts)
	}
}

// TestGapOutlivesEviction gives a client a URL of a host that wants a gap. After a restart the
// host's queue in another crawl keeps the gap, although nobody asks for the first one.
func TestGapOutlivesEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		s := openSmall(t, path)
		set(t, s, docindex.SetDelay, "", 0)
		var o docindex.Outcomes
		o.Add(docindex.Outcome{URL: []byte("http://a.test/"), Gap: time.Hour})
		if err := s.Pause(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		putURLs(t, s, docindex.Put{URL: []byte("http://a.test/1"), Crawl: []byte("one")})
		want(t, "first", serve(t, s, docindex.Request{}), "http://a.test/1")
		putURLs(t, s, docindex.Put{URL: []byte("http://a.test/1"), Crawl: []byte("one"), Update: true,
			Due: docindex.Never})
		putURLs(t, s, docindex.Put{URL: []byte("http://a.test/2"), Crawl: []byte("two")})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openSmall(t, path)
		time.Sleep(time.Hour - time.Second)
		want(t, "before the gap is over", serve(t, s, docindex.Request{}))
		time.Sleep(time.Second)
		want(t, "when it is over", serve(t, s, docindex.Request{}), "http://a.test/2")
	})
}

// TestCrawlsAreEvicted puts URLs of a crawl with an appid without memory for queues, and stops it after
// a restart.
func TestCrawlsAreEvicted(t *testing.T) {
	const hosts = 2000
	path := t.TempDir()
	s := openSmall(t, path)
	var puts []docindex.Put
	for i := range hosts {
		puts = append(puts, of("c", fmt.Sprintf("http://www.host-%d.test/", i), 0))
	}
	putURLs(t, s, puts...)
	if n := s.QueuesInMemory(); n > hosts/2 {
		t.Errorf("%d of %d queues are in memory", n, hosts)
	}
	taken := len(candidates(t, s))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s = openSmall(t, path); s.QueuesInMemory() > hosts/2 {
		t.Errorf("opened again, %d of %d queues are in memory", s.QueuesInMemory(), hosts)
	}
	putURLs(t, s, puts[0])
	stop(t, s, "c")
	purge(t, s, "c", hosts)
	if n := s.QueuesInMemory(); n > hosts/2 {
		t.Errorf("after the purge %d of %d queues are in memory", n, hosts)
	}
	if n := s.Stats(); taken == 0 || n.Completed != hosts || n.Scheduled != 0 {
		t.Errorf("%d were taken, and there are %+v; want %d completed", taken, n, hosts)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
