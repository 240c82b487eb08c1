package redis

import (
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/recrawl"
	"urlserver/docindex/scoped"
	"urlserver/internal/scope"
	"urlserver/internal/testkit/redistest"
)

// TestClockAhead: the clock of one daemon is an hour ahead. Nothing ends there before its moment by Redis' clock.
func TestClockAhead(t *testing.T) {
	s := openStore(t, nil, redistest.Start(t).Addr())
	s.local = func() time.Time { return time.Now().Add(time.Hour) }
	soon := time.Now().Add(30 * time.Minute)
	putOf(t, s, of("expires", "http://a.test/", soon.Unix()))
	if due, err := s.CrawlsToEnd(t.Context(), s.local(), 10); len(due) > 0 || err != nil {
		t.Errorf("half an hour before it expires a crawl is to end: %v, %v", due, err)
	}
	putOf(t, s, of("ended", "http://b.test/", 0))
	end(t, s, take(t, s))
	if done, err := s.FinishedCrawls(t.Context(), s.local().Add(-10*time.Second), 10); len(done) > 0 || err != nil {
		t.Errorf("a moment after its last document a crawl is quiet for 10 s: %v, %v", done, err)
	}
	again := scoped.New(s)
	if err := again.Widen(t.Context(), "scoped", func(scope.Scope, bool) (scope.Scope, error) {
		return scope.Scope{Until: soon}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if res := putOf(t, again, docindex.Put{URL: []byte("http://c.test/"), Crawl: []byte("scoped")}); res.New != 1 {
		t.Errorf("half an hour before the end of a scope a put is answered %+v; want a new document", res)
	}
}

// TestClockBehind: the clock of one daemon is an hour behind. A document that it is to fetch again in half an hour
// is not due at once.
func TestClockBehind(t *testing.T) {
	right := func() time.Time { return time.Now().Add(time.Hour) }
	s := openStore(t, func() int64 { return right().UnixMicro() }, redistest.Start(t).Addr())
	again := recrawl.New(scoped.New(s), recrawl.Rule{Error: 30 * time.Minute})
	putOf(t, again, docindex.Put{URL: []byte("http://a.test/")})
	b := take(t, s)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Status: 500, At: time.Now()})
	if err := again.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	d, err := s.Document(t.Context(), b.At(0).DocID)
	if in := time.Unix(d.Due, 0).Sub(right()); err != nil || in < 29*time.Minute || in > 31*time.Minute {
		t.Errorf("the document is due in %v (%v); want half an hour", in, err)
	}
}
