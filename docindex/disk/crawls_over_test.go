package disk_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

// manyOf puts n documents of a crawl, all on one host.
func manyOf(t *testing.T, s *disk.Store, crawl string, n int) {
	t.Helper()
	var puts []docindex.Put
	for i := range n {
		puts = append(puts, of(crawl, fmt.Sprintf("http://a.test/%d", i), 0))
	}
	putURLs(t, s, puts...)
}

func stop(t *testing.T, s *disk.Store, crawl string) {
	t.Helper()
	if err := s.StopCrawl(t.Context(), id(crawl), docindex.Stopped); err != nil {
		t.Fatal(err)
	}
}

// A purge of scheduled documents does not write a row for each document.
func TestPurgeWritesLittle(t *testing.T) {
	synctest.Test(t, purgeWritesLittle) // time stands still: clearing, which follows a purge, does not begin
}

func purgeWritesLittle(t *testing.T) {
	s := open(t, t.TempDir(), disk.Batch)
	manyOf(t, s, "c", 5000)
	stop(t, s, "c")
	before := s.Logged()
	purge(t, s, "c", 5000)
	if n := s.Logged() - before; n > 5000 {
		t.Errorf("%d bytes were written to purge 5000 documents", n)
	}
	if n := s.Stats(); n.Completed != 5000 || n.Scheduled != 0 || n.Outcomes[docindex.Stopped] != 5000 {
		t.Errorf("there are %+v; want 5000 completed", n)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// Purged documents appear as completed in all requests. They can be deleted, and another
// application can put them again.
func TestPurgedDocuments(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.Batch)
	manyOf(t, s, "c", 3)
	named := of("c", "http://a.test/named", 0)
	named.DocID = []byte("mine")
	putURLs(t, s, named)
	stop(t, s, "c")
	purge(t, s, "c", 4)
	for range 2 {
		s = again(t, s, path)
		n := 0
		if err := s.List(t.Context(), docindex.Scope{Crawl: []byte("c")}, func(d *docindex.Document) bool {
			if n++; d.State != docindex.Completed || len(d.URL) < len("http://a.test/0") ||
				d.Due != docindex.Never || string(d.Metadata) != `{"appid":["app"],"spiderid":["link"]}` {
				t.Errorf("listed is %+v; want it completed, with its URL and owner", d)
			}
			return true
		}); err != nil || n != 4 {
			t.Errorf("%d documents are listed, %v; want 4", n, err)
		}
		if d, err := s.Document(t.Context(), []byte("mine")); err != nil ||
			string(d.URL) != "http://a.test/named" || d.State != docindex.Completed {
			t.Errorf("the document is %+v, %v", d, err)
		}
	}
	other := of("c", "http://a.test/1", 0)
	other.Metadata, other.Update = []byte(`{"appid":["other"]}`), true
	putURLs(t, s, other)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	want(t, "served", serve(t, s, docindex.Request{}), "http://a.test/1")
	if n, err := s.Purge(t.Context(), docindex.Scope{Crawl: []byte("c"), Key: []byte("a.test")},
		time.Now().Add(time.Hour)); n != 5 || err != nil {
		t.Errorf("%d are forgotten, %v; want 4, and that of the other application", n, err)
	}
	again(t, s, path)
}

// A document behind many purged ones of another crawl in the same queue is served at once, wherever
// the scan of the queue begins.
func TestBehindPurged(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.None)
	manyOf(t, s, "c", 12_000)
	stop(t, s, "c")
	other := of("c", "http://a.test/other", 0)
	other.Metadata = []byte(`{"appid":["other"]}`)
	putURLs(t, s, other)
	take := func(when string) {
		t.Helper()
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 10, nil, &b); err != nil || b.Len() != 1 ||
			string(b.At(0).URL) != "http://a.test/other" {
			t.Fatalf("%s: %d candidates, %v; want the other's", when, b.Len(), err)
		}
	}
	take("before the purge")
	purge(t, s, "c", 12_000)
	s = again(t, s, path) // documents that were at the slots are due again
	take("opened again")
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// A document that was in transit when its crawl was purged ends when it comes back, or when the
// process ends.
func TestComesBackAfterPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		s := open(t, path, disk.Batch)
		manyOf(t, s, "c", 10)
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 4, nil, &b); err != nil || b.Len() != 4 {
			t.Fatalf("%d candidates, %v", b.Len(), err)
		}
		stop(t, s, "c")
		purge(t, s, "c", 6)
		var stopped, back docindex.Outcomes
		stopped.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Kind: docindex.Stopped})
		stopped.Add(docindex.Outcome{DocID: b.At(1).DocID, URL: b.At(1).URL, Status: 200})
		back.Add(docindex.Outcome{DocID: b.At(2).DocID, URL: b.At(2).URL})
		for range 2 { // the second report changes nothing
			if err := s.Outcomes(t.Context(), &stopped); err != nil {
				t.Fatal(err)
			}
			if err := s.Return(t.Context(), &back); err != nil {
				t.Fatal(err)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		}
		wantCounts := func(completed, inTransit uint64) {
			t.Helper()
			if n := indextest.Count(t, s, nil); n.Completed != completed || n.InTransit != inTransit ||
				n.Scheduled != 0 {
				t.Errorf("there are %+v; want %d completed, %d in transit", n, completed, inTransit)
			}
		}
		wantCounts(9, 1)
		if n := s.Stats().Outcomes; n[docindex.Stopped] != 8 || n[docindex.Done] != 1 {
			t.Errorf("outcomes are %v; want 8 stopped, 1 done", n)
		}
		s = again(t, s, path)
		wantCounts(10, 0)
		wantOverdue(t, s)
		if c := indextest.CrawlCounts(t, s, 1); c[0].Purged != 9 || c[0].Done != 1 {
			t.Errorf("counts are %+v; want 9 purged, 1 done", c)
		}
	})
}

// A client keeps its leases of a purged crawl's documents until they end, also over a restart.
func TestLeasedOverPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		s := open(t, path, disk.Batch)
		manyOf(t, s, "c", 3)
		want(t, "served", serve(t, s, docindex.Request{PerQueue: 1, Lease: time.Minute}), "http://a.test/0")
		stop(t, s, "c")
		purge(t, s, "c", 2)
		var o docindex.Outcomes
		d, err := s.Find(t.Context(), docindex.Scope{Crawl: []byte("c"), Key: []byte("a.test")},
			[]byte("http://a.test/0"))
		if err != nil || d.State != docindex.InTransit {
			t.Fatalf("the document is %v, %v; want it in transit", d.State, err)
		}
		s = again(t, s, path)
		if n := indextest.Count(t, s, nil); n.InTransit != 1 || n.Completed != 2 {
			t.Errorf("there are %+v; want one in transit", n)
		}
		o.Add(docindex.Outcome{DocID: d.DocID, URL: d.URL, Kind: docindex.Stopped})
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		s = again(t, s, path)
		if n := indextest.Count(t, s, nil); n.InTransit != 0 || n.Completed != 3 {
			t.Errorf("there are %+v; want all completed", n)
		}
		purge(t, s, "c", 3) // the first purge was not acknowledged
	})
}
