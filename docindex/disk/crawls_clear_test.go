package disk_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

func wantRows(t *testing.T, s *disk.Store, bodies, docs, over int) {
	t.Helper()
	b, d, o, err := s.Rows()
	if err != nil || b != bodies || d != docs || o != over {
		t.Errorf("there are rows of %d bodies, %d documents, %d partitions that are over, %v; want %d, "+
			"%d and %d", b, d, o, err, bodies, docs, over)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// Some time after a purge the store deletes the bodies of the purged documents, and nothing else.
func TestPurgedBodiesLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		s := open(t, path, disk.Batch)
		manyOf(t, s, "c", 3000)
		manyOf(t, s, "d", 100)
		other := of("c", "http://a.test/other", 0)
		other.Metadata = []byte(`{"appid":["other"]}`)
		putURLs(t, s, other, of("c", "http://b.test/1", 0))
		stop(t, s, "c")
		purge(t, s, "c", 3001)
		time.Sleep(time.Minute)
		wantRows(t, s, 101, 3102, 0)
		s = again(t, s, path)
		wantRows(t, s, 101, 3102, 0)
		if c := indextest.CrawlCounts(t, s, 3); c[0].Crawl != "c" || c[0].Purged != 3001 || c[0].Done != 0 {
			t.Errorf("counts are %+v; want 3001 purged", c)
		}
		var p docindex.Puts
		if err := p.Add(of("c", "http://a.test/7", 0)); err != nil {
			t.Fatal(err)
		}
		if res, err := s.Put(t.Context(), &p); res.Dropped != 1 || err != nil {
			t.Errorf("put: %+v, %v; want it dropped", res, err)
		}
		want(t, "served", serve(t, s, docindex.Request{PerQueue: 1}), "http://a.test/0", "http://a.test/other")
	})
}

// A store that was closed before it had deleted all purged bodies deletes the rest once it is
// opened.
func TestPurgedBodiesLeaveOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		s := open(t, path, disk.Batch)
		manyOf(t, s, "c", 1000)
		stop(t, s, "c")
		purge(t, s, "c", 1000)
		clearSome(t, s)
		wantRows(t, s, 801, 1000, 1)
		s = again(t, s, path)
		wantRows(t, s, 801, 1000, 1)
		time.Sleep(time.Minute)
		wantRows(t, s, 0, 1000, 0)
		purge(t, s, "c", 1000) // the first purge was not acknowledged
	})
}

func clearSome(t *testing.T, s *disk.Store) (more bool) {
	t.Helper()
	more, err := s.ClearSome()
	if err != nil {
		t.Fatal(err)
	}
	return more
}

// A purged body stays while its document or another one of its partition is in transit. The store
// deletes it after that.
func TestBodiesInTransitStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), disk.Batch)
		manyOf(t, s, "c", 10)
		putURLs(t, s, of("c", "http://b.test/1", 0))
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 1, []string{"b.test"}, &b); err != nil || b.Len() != 1 {
			t.Fatalf("%d candidates, %v", b.Len(), err)
		}
		want(t, "served", serve(t, s, docindex.Request{PerQueue: 1, Lease: time.Hour}), "http://b.test/1")
		stop(t, s, "c")
		purge(t, s, "c", 9)
		time.Sleep(time.Minute)
		wantRows(t, s, 11, 11, 2)
		var o docindex.Outcomes
		o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Kind: docindex.Stopped})
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		wantRows(t, s, 1, 11, 1)
		time.Sleep(time.Hour) // the lease ends, too
		if n := indextest.Count(t, s, nil); n.Completed != 10 || n.Scheduled != 1 {
			t.Errorf("there are %+v; want 10 completed, and one that the next sweep ends", n)
		}
		wantRows(t, s, 1, 11, 1)
		wantOverdue(t, s)
		time.Sleep(time.Minute)
		wantRows(t, s, 0, 11, 0)
		if n := s.Stats().Outcomes; n[docindex.Stopped] != 11 {
			t.Errorf("outcomes are %v; want 11 stopped", n)
		}
	})
}

// No client sees a difference between two steps of clearing, whatever happens between the steps,
// and also if the store is opened again between them.
func TestClearingIsUnseen(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			path := t.TempDir()
			s := open(t, path, disk.None)
			var puts []docindex.Put
			for i := range 1500 {
				p := of("c", fmt.Sprintf("http://h%d.test/%d", rnd.IntN(4), i), 0)
				p.Priority = int32(rnd.IntN(5))
				if i%4 == 0 {
					p.Key = []byte("mixed")
				}
				if i%7 == 0 {
					p.Metadata = []byte(`{"appid":["other"]}`)
				}
				if i%11 == 0 {
					p.DocID = fmt.Appendf(nil, "mine %d", i)
				}
				puts = append(puts, p)
			}
			putURLs(t, s, puts...)
			stop(t, s, "c")
			if _, err := s.PurgeCrawl(t.Context(), id("c"), nil); err != nil {
				t.Fatal(err)
			}
			seen := look(t, s)
			for more := true; more; {
				switch rnd.IntN(6) {
				case 0:
					s = again(t, s, path)
				case 1: // another application puts a purged URL, and a client deletes one
					p := puts[rnd.IntN(len(puts))]
					p.Update, p.DocID, p.Metadata = true, nil, []byte(`{"appid":["other"]}`)
					putURLs(t, s, p)
					scope := docindex.Scope{Crawl: []byte("c"), Key: []byte("h1.test")}
					if _, err := s.Delete(t.Context(), scope); err != nil {
						t.Fatal(err)
					}
					seen = look(t, s)
				}
				more = clearSome(t, s)
				if got := look(t, s); !reflect.DeepEqual(got, seen) {
					t.Fatalf("seed %d: a step is seen: %s", seed, difference(got, seen))
				}
				if err := s.Check(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if b, _, over, err := s.Rows(); over != 0 || b != int(indextest.Count(t, s, nil).Scheduled) || err != nil {
				t.Errorf("seed %d: %d bodies and %d partitions are left, %v", seed, b, over, err)
			}
		})
	}
}

// look returns all that clients can see of the documents and of a crawl.
func look(t *testing.T, s *disk.Store) map[string]string {
	t.Helper()
	all := map[string]string{"counts": fmt.Sprintf("%+v", indextest.Count(t, s, nil))}
	if err := s.List(t.Context(), docindex.Scope{Crawl: []byte("c")}, func(d *docindex.Document) bool {
		all[string(d.DocID)] = fmt.Sprintf("%s %v %v %d %d %s %s", d.URL, d.State, d.Created, d.Due,
			d.Priority, d.Key, d.Metadata)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range indextest.CrawlCounts(t, s, 10) {
		all[c.Spider+c.App+c.Crawl] = fmt.Sprintf("%+v", c)
	}
	return all
}

func difference(got, want map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if got[k] != want[k] {
			return fmt.Sprintf("%s is %q; was %q", k, got[k], want[k])
		}
	}
	return fmt.Sprintf("%d entries; were %d", len(got), len(want))
}

// Clearing many small queues takes few steps. A purge between the steps is cleared, too.
func TestClearManyQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), disk.None)
		for _, crawl := range []string{"c", "d"} {
			var puts []docindex.Put
			for i := range 1000 {
				puts = append(puts, of(crawl, fmt.Sprintf("http://h%d.test/", i), 0))
			}
			putURLs(t, s, puts...)
		}
		stop(t, s, "c")
		purge(t, s, "c", 1000)
		clearSome(t, s)
		stop(t, s, "d")
		purge(t, s, "d", 1000)
		steps := 1
		for ; clearSome(t, s); steps++ {
		}
		if steps > 50 {
			t.Errorf("2000 queues took %d steps; want at most 50", steps)
		}
		wantRows(t, s, 0, 2000, 0)
	})
}

// Clearing finds documents that are purged while it scans their queue, before or behind its
// position.
func TestClearPurgedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), disk.None)
		other := docindex.CrawlID{Spider: docindex.DefaultSpider, App: "other", Crawl: "c"}
		var puts []docindex.Put
		for i := range 1000 {
			p := of("c", fmt.Sprintf("http://a.test/%d", i), 0)
			q := p
			q.Metadata = []byte(`{"appid":["other"]}`)
			puts = append(puts, p, q)
		}
		putURLs(t, s, puts...)
		stop(t, s, "c")
		purge(t, s, "c", 1000)
		for range 5 {
			clearSome(t, s)
		}
		wantRows(t, s, 1500, 2000, 1)
		if err := s.StopCrawl(t.Context(), other, docindex.Stopped); err != nil {
			t.Fatal(err)
		}
		if n, err := s.PurgeCrawl(t.Context(), other, nil); n != 1000 || err != nil {
			t.Fatalf("%d purged, %v", n, err)
		}
		for clearSome(t, s) {
		}
		wantRows(t, s, 0, 2000, 0)
	})
}
