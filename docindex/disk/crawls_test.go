package disk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

func TestCrawls(t *testing.T) {
	indextest.RunCrawls(t, 1, func(t *testing.T) docindex.Store {
		s := open(t, t.TempDir(), disk.None)
		t.Cleanup(func() {
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		})
		return s
	})
}

// reopening is a store that is now and then closed and opened again, and that clears purged
// documents one step at a time.
type reopening struct {
	*disk.Store
	t       *testing.T
	path    string
	reports int
}

// ReportPending also closes, opens or clears the store: the test calls it after each operation.
func (r *reopening) ReportPending(ctx context.Context, id docindex.CrawlID, domains int,
	away *docindex.Outcomes) (docindex.PendingReport, error) {
	if r.reports++; r.reports%50 == 0 {
		r.Store = again(r.t, r.Store, r.path)
	}
	if r.reports%3 == 0 {
		clearSome(r.t, r.Store)
	}
	return r.Store.ReportPending(ctx, id, domains, away)
}

func TestCrawlsOpenedAgain(t *testing.T) {
	path := t.TempDir()
	indextest.RunCrawlsTwin(t, 1, &reopening{Store: open(t, path, disk.None), t: t, path: path})
}

func of(crawl, url string, expires int64) docindex.Put {
	return docindex.Put{
		URL: []byte(url), Crawl: []byte(crawl), Metadata: fmt.Appendf(nil,
			`{"appid":["app"],"expires":["%d"]}`, expires),
	}
}

func id(crawl string) docindex.CrawlID {
	return docindex.CrawlID{Spider: docindex.DefaultSpider, App: "app", Crawl: crawl}
}

func wantOverdue(t *testing.T, s *disk.Store, want ...docindex.CrawlEnd) {
	t.Helper()
	got, err := s.CrawlsToEnd(t.Context(), time.Now(), 10)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("overdue are %v, %v; want %v", got, err, want)
	}
}

func wantFinished(t *testing.T, s *disk.Store, want ...docindex.FinishedCrawl) {
	t.Helper()
	got, err := s.FinishedCrawls(t.Context(), time.Now(), 10)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("finished are %v, %v; want %v", got, err, want)
	}
}

func purge(t *testing.T, s *disk.Store, crawl string, want int) {
	t.Helper()
	if n, err := s.PurgeCrawl(t.Context(), id(crawl), func(*docindex.Outcomes) (int, error) {
		return 0,
			nil
	}); n != want || err != nil {
		t.Errorf("%d of crawl %s purged, %v; want %d", n, crawl, err, want)
	}
}

func ackEnd(t *testing.T, s *disk.Store, crawl string, round uint64) {
	t.Helper()
	if err := s.AckCrawlEnd(t.Context(), id(crawl), round); err != nil {
		t.Fatal(err)
	}
}

// After a restart the store continues with crawls that were ending. It lists those again whose end
// was not acknowledged.
func TestCrawlsEndOnceOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		s := open(t, path, disk.Batch)
		soon := time.Now().Unix() + 10
		putURLs(t, s, of("soon", "http://a.test/1", soon), of("soon", "http://b.test/1", soon),
			of("stopped", "http://a.test/1", 0), of("stopped", "http://b.test/1", 0))
		s = again(t, s, path)
		wantOverdue(t, s)
		time.Sleep(10 * time.Second)
		expired := docindex.CrawlEnd{CrawlID: id("soon"), Expired: true}
		wantOverdue(t, s, expired)
		for crawl, why := range map[string]docindex.Kind{"soon": docindex.Expired, "stopped": docindex.Stopped} {
			if err := s.StopCrawl(t.Context(), id(crawl), why); err != nil {
				t.Fatal(err)
			}
		}
		s = again(t, s, path) // before the purge
		wantOverdue(t, s, expired, docindex.CrawlEnd{CrawlID: id("stopped")})
		purge(t, s, "soon", 2)
		purge(t, s, "stopped", 2)
		wantOverdue(t, s)
		s = again(t, s, path) // before the reply and the notice
		wantOverdue(t, s, expired)
		purge(t, s, "soon", 2)
		purge(t, s, "stopped", 2)
		ackEnd(t, s, "soon", 0)
		purge(t, s, "soon", 0)
		s = again(t, s, path)
		wantOverdue(t, s)
		wantFinished(t, s)
		var p docindex.Puts
		if err := p.Add(of("soon", "http://c.test/1", 0)); err != nil {
			t.Fatal(err)
		}
		if res, err := s.Put(t.Context(), &p); res.Dropped != 1 || err != nil {
			t.Errorf("put: %+v, %v; want it dropped", res, err)
		}
	})
}

func TestCrawlsFinishOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		s := open(t, path, disk.Batch)
		end := func(url string) {
			t.Helper()
			put := of("c", url, 0)
			putURLs(t, s, put)
			wantFinished(t, s)
			put.Update, put.Due = true, docindex.Never
			putURLs(t, s, put)
		}
		first := docindex.FinishedCrawl{CrawlID: id("c"), Done: 1, Epoch: 1}
		end("http://a.test/1")
		s = again(t, s, path)
		wantFinished(t, s, first)
		wantFinished(t, s) // once
		s = again(t, s, path)
		wantFinished(t, s, first) // its end was not acknowledged
		ackEnd(t, s, "c", first.Epoch)
		s = again(t, s, path)
		wantFinished(t, s)
		end("http://a.test/2")
		ackEnd(t, s, "c", first.Epoch) // late
		s = again(t, s, path)
		wantFinished(t, s, docindex.FinishedCrawl{CrawlID: id("c"), Done: 2, Epoch: 2})
	})
}

// A document that a URL Frontier client had when its crawl was stopped ends when its lease ends.
// The next purge counts it.
func TestStrays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), disk.None)
		putURLs(t, s, of("c", "http://a.test/1", 0), of("c", "http://b.test/1", 0))
		want(t, "served", serve(t, s, docindex.Request{Lease: time.Minute}), "http://a.test/1", "http://b.test/1")
		if err := s.StopCrawl(t.Context(), id("c"), docindex.Stopped); err != nil {
			t.Fatal(err)
		}
		purge(t, s, "c", 0)
		time.Sleep(time.Minute)
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 10, nil, &b); err != nil || b.Len() != 0 {
			t.Errorf("%d candidates, %v; want none", b.Len(), err)
		}
		if n := indextest.Count(t, s, nil); n.Scheduled+n.InTransit != 0 || n.Completed != 2 {
			t.Errorf("counts are %+v; want 2 completed", n)
		}
		purge(t, s, "c", 2)
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	})
}

// The store counts documents of any number of priorities, also after a restart.
func TestManyPriorities(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.None)
	for i := range 1000 {
		p := of("c", fmt.Sprintf("http://a.test/%d", i), 0)
		p.Priority = int32(i-500) * 1_000_003
		putURLs(t, s, p)
	}
	for range 2 {
		v, err := s.ReportPending(t.Context(), id("c"), 10, nil)
		if err != nil || v.Crawls[0].Pending != (docindex.Pending{Total: 1000, Low: -500 * 1_000_003,
			High: 499 * 1_000_003}) {
			t.Errorf("survey is %+v, %v", v, err)
		}
		s = again(t, s, path)
	}
}

// The store can be opened again whatever names clients gave to queues.
func TestStrangeNames(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.None)
	for _, key := range []string{".", "\x00", "é", "co.uk", "[::1]"} {
		p := of("c\x00", "no URL at all", 0)
		p.Key = []byte(key)
		putURLs(t, s, p)
	}
	s = again(t, s, path)
	if v, err := s.ReportPending(t.Context(), id("c\x00"), 10, nil); err != nil || v.Total != 5 || v.Domains != 5 {
		t.Errorf("survey is %+v, %v; want 5 documents of 5 domains", v, err)
	}
}

// A purge returns an error if the store is closed between two of its portions.
func TestCloseWhilePurging(t *testing.T) {
	s := open(t, t.TempDir(), disk.Batch)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.SettleNext(); !errors.Is(err, disk.ErrClosed) {
		t.Errorf("waiting for the disk: %v; want %v", err, disk.ErrClosed)
	}
}

// StopCrawl leaves no trace if it fails.
func TestRefuseWithoutStore(t *testing.T) {
	s := open(t, t.TempDir(), disk.None)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.StopCrawl(t.Context(), id("c"), docindex.Stopped); !errors.Is(err, disk.ErrClosed) {
		t.Errorf("Refuse: %v; want %v", err, disk.ErrClosed)
	}
	if _, err := s.PurgeCrawl(t.Context(), id("c"), nil); err != nil {
		t.Errorf("PurgeCrawl of a crawl that nobody refused: %v", err)
	}
}

// A purge ends many documents of a queue at once. It spares documents of other applications and
// documents in transit.
func TestPurgeAmongOthers(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.Batch)
	var others []string
	for i := range 100 {
		p := of("c", fmt.Sprintf("http://a.test/%d", i), 0)
		if p.Priority = int32(-i); i%21 == 20 || i > 90 && i%2 == 0 {
			p.Metadata = []byte(`{"appid":["other"]}`)
			others = append(others, string(p.URL))
		}
		putURLs(t, s, p)
	}
	if err := s.Set(t.Context(), docindex.Setting{Kind: docindex.SetDelay}); err != nil {
		t.Fatal(err)
	}
	want(t, "served", serve(t, s, docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour}), "http://a.test/0")
	if err := s.StopCrawl(t.Context(), id("c"), docindex.Stopped); err != nil {
		t.Fatal(err)
	}
	purge(t, s, "c", 99-len(others))
	for range 2 {
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		n := indextest.Count(t, s, nil)
		if n.InTransit != 1 || int(n.Scheduled) != len(others) || int(n.Completed) != 99-len(others) {
			t.Errorf("counts are %+v; want 1 in transit and %d scheduled", n, len(others))
		}
		s = again(t, s, path)
	}
	want(t, "served", serve(t, s, docindex.Request{AnyCrawl: true, PerQueue: 100, Lease: time.Hour}), others...)
}

// TestPurgedLeaseEndsOnce: another daemon says of one of two documents that it stopped with its crawl. After a restart
// that one stays completed, and the other one is leased.
func TestPurgedLeaseEndsOnce(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.Batch)
	putURLs(t, s, of("c", "http://a.test/1", 0), of("c", "http://b.test/1", 0))
	var b docindex.Batch
	if err := s.Lease(t.Context(), 10, nil, time.Hour, &b); err != nil || b.Len() != 2 {
		t.Fatalf("%d leased, %v; want 2", b.Len(), err)
	}
	if err := s.StopCrawl(t.Context(), id("c"), docindex.Stopped); err != nil {
		t.Fatal(err)
	}
	purge(t, s, "c", 0)
	for ended := range b.Len() {
		var o docindex.Outcomes
		o.Add(docindex.Outcome{DocID: b.At(ended).DocID, URL: b.At(ended).URL, Kind: docindex.Stopped})
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		s = again(t, s, path)
		n, err := s.Count(t.Context(), nil)
		if err != nil || int(n.InTransit) != 1-ended || int(n.Completed) != 1+ended {
			t.Errorf("after %d outcomes: %+v, %v; want %d completed", 1+ended, n, err, 1+ended)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}
