package indextest

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
)

// RunCrawls runs the suite for stores that keep crawls. open returns a new, empty store that is
// usable until the test ends. The documents of all crawls are counted after every some-th random
// operation.
func RunCrawls(t *testing.T, some int, open func(t *testing.T) docindex.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, docindex.Store)
	}{
		{"nothing is known", pendingEmpty},
		{"pending by domain and priority", pendingCounts},
		{"largest domains", pendingLargest},
		{"at spiders and at clients", pendingInFlight},
		{"refused crawls", stopped},
		{"purged in portions", purgeMany},
		{"what is at the slots is told", purgeAtSlots},
		{"a purge that fails", purgeFails},
		{"a purge of which nobody was told", purgeUnacknowledged},
		{"nothing of a refused crawl goes out", stoppedStays},
		{"news of refused crawls", stoppedUpdate},
		{"expiry", expiry},
		{"who says when a crawl expires", expiryIsSaid},
		{"finished crawls", finished},
		{"fetched again, it stays in its crawl", fetchedAgain},
		{"deleted crawls", deletedCrawl},
		{"a queue of several crawls is deleted", deletedQueue},
		{"what is deleted at the slots is told", deletedAtSlots},
		{"documents change their crawl", changesCrawl},
		{"the last outcome of what was stopped", lastOfStopped},
		{"counts", crawlCounts},
		{"list", crawlList},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.test(t, open(t)) })
		})
	}
	t.Run("random, against recounting", func(t *testing.T) { RunCrawlsTwin(t, some, open(t)) })
}

// crawlPut returns the put of a document with the appid app and the spiderid link.
func crawlPut(crawl, url string, priority int32) docindex.Put {
	return docindex.Put{
		URL: []byte(url), Crawl: []byte(crawl), Priority: priority,
		Metadata: []byte(`{"appid":["app"],"spiderid":["link"]}`),
	}
}

func crawlID(crawl string) docindex.CrawlID {
	return docindex.CrawlID{Spider: "link", App: "app", Crawl: crawl}
}

func pendingReport(t *testing.T, s docindex.Store, crawl string, domains int,
	away *docindex.Outcomes) docindex.PendingReport {
	t.Helper()
	v, err := s.ReportPending(t.Context(), crawlID(crawl), domains, away)
	if err != nil {
		t.Fatalf("Survey: %v", err)
	}
	return v
}

func wantPendingReport(t *testing.T, got, want docindex.PendingReport) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("survey is\n%+v; want\n%+v", got, want)
	}
}

func pending(total uint64, low, high int32) docindex.Pending {
	return docindex.Pending{Total: total, Low: low, High: high}
}

func pendingEmpty(t *testing.T, s docindex.Store) {
	wantPendingReport(t, pendingReport(t, s, "", 10, nil), docindex.PendingReport{})
	none := docindex.PendingReport{Count: 1, Crawls: []docindex.CrawlPending{{Crawl: "c"}}}
	wantPendingReport(t, pendingReport(t, s, "c", 10, nil), none)
	put(t, s, docindex.Put{URL: []byte("http://a.test/"), Crawl: []byte("c")}) // of no application
	wantPendingReport(t, pendingReport(t, s, "c", 10, nil), none)
}

func pendingCounts(t *testing.T, s docindex.Store) {
	put(t, s,
		crawlPut("c1", "http://www.example.co.uk/1", 5), crawlPut("c1", "http://sub.example.co.uk/2", 7),
		crawlPut("c1", "https://example.co.uk/3", 6),
		crawlPut("c1", "http://10.0.0.1/", 1), crawlPut("c1", "http://[2001:db8::1]/", 2),
		crawlPut("c2", "http://example.co.uk/1", 9), crawlPut("c2", "http://localhost/", 9),
	)
	one := docindex.CrawlPending{Crawl: "c1", Pending: pending(5, 1, 7), Distinct: 3, Domains: []docindex.DomainPending{
		{Domain: "example.co.uk", Pending: pending(3, 5, 7)},
		{Domain: "10.0.0.1", Pending: pending(1, 1, 1)}, {Domain: "2001:db8::1", Pending: pending(1, 2, 2)},
	}}
	two := docindex.CrawlPending{Crawl: "c2", Pending: pending(2, 9, 9), Distinct: 2, Domains: []docindex.DomainPending{
		{Domain: "example.co.uk", Pending: pending(1, 9, 9)}, {Domain: "localhost", Pending: pending(1, 9, 9)},
	}}
	wantPendingReport(t, pendingReport(t, s, "c1", 10, nil), docindex.PendingReport{Total: 5, Domains: 3,
		Count: 1, Crawls: []docindex.CrawlPending{one}})
	wantPendingReport(t, pendingReport(t, s, "", 10, nil), docindex.PendingReport{Total: 7, Domains: 4,
		Count: 2, Crawls: []docindex.CrawlPending{one, two}})
	end(t, s, take(t, s, 100))
	wantPendingReport(t, pendingReport(t, s, "", 10, nil), docindex.PendingReport{})
}

func pendingLargest(t *testing.T, s docindex.Store) {
	for i := range 30 {
		for j := range i + 1 {
			put(t, s, crawlPut("c", fmt.Sprintf("http://d%02d.test/%d", i, j), 0))
		}
	}
	v := pendingReport(t, s, "", 3, nil)
	want := []docindex.DomainPending{{Domain: "d29.test", Pending: pending(30, 0, 0)},
		{Domain: "d28.test", Pending: pending(29, 0, 0)}, {Domain: "d27.test", Pending: pending(28, 0, 0)}}
	if c := v.Crawls[0]; c.Distinct != 30 || !reflect.DeepEqual(c.Domains, want) || v.Domains != 30 {
		t.Errorf("survey is %+v; want 30 domains, of them %+v", v, want)
	}
}

func pendingInFlight(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://a.test/1", 1), crawlPut("c", "http://a.test/2", 9),
		crawlPut("c", "http://b.test/1", 5))
	b := take(t, s, 3)
	if v := pendingReport(t, s, "c", 9, nil); v.Total != 3 {
		t.Errorf("%d pending; want 3, which nothing says are at spiders", v.Total)
	}
	var away docindex.Outcomes
	for i := range b.Len() {
		if u := string(b.At(i).URL); u == "http://a.test/2" || u == "http://b.test/1" {
			away.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL})
		}
	}
	wantPendingReport(t, pendingReport(t, s, "c", 9, &away), docindex.PendingReport{Total: 1, Domains: 1,
		Count: 1, Crawls: []docindex.CrawlPending{
			{Crawl: "c", Pending: pending(1, 1, 1), Distinct: 1,
				Domains: []docindex.DomainPending{{Domain: "a.test", Pending: pending(1, 1, 1)}}},
		}})
	if v := pendingReport(t, s, "", 9, &away); v.Total != 1 || v.Domains != 1 {
		t.Errorf("survey of the application is %+v; want one pending", v)
	}
	put(t, s, crawlPut("c", "http://c.test/1", 5))
	call(t, s, any)
	if v := pendingReport(t, s, "c", 9, &away); v.Total != 1 {
		t.Errorf("%d pending; what a client has is not", v.Total)
	}
	time.Sleep(2 * time.Minute)
	s.Stats() // catches up
	if v := pendingReport(t, s, "c", 9, &away); v.Total != 2 {
		t.Errorf("%d pending; want what the client has lost, too", v.Total)
	}
}

func expiry(t *testing.T, s docindex.Store) {
	start := time.Now()
	with := func(crawl string, in time.Duration) {
		p := crawlPut(crawl, "http://a.test/", 0)
		p.Metadata = fmt.Appendf(nil, `{"appid":["app"],"expires":["%d"]}`, start.Add(in).Unix())
		put(t, s, p)
	}
	overdue := func() (ids []docindex.CrawlID) {
		t.Helper()
		ends, err := s.CrawlsToEnd(t.Context(), time.Now(), 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range ends {
			if !e.Expired {
				t.Errorf("%v has not expired", e.CrawlID)
			}
			ids = append(ids, e.CrawlID)
		}
		return ids
	}
	with("late", time.Hour)
	with("soon", 10*time.Second)
	if v := pendingReport(t, s, "soon", 9, nil); v.Crawls[0].Expires != start.Unix()+10 {
		t.Errorf("it expires at %d; want %d", v.Crawls[0].Expires, start.Unix()+10)
	}
	time.Sleep(9 * time.Second)
	if got := overdue(); len(got) != 0 {
		t.Errorf("overdue are %v", got)
	}
	time.Sleep(time.Second)
	for range 2 { // until it is purged
		if got := overdue(); len(got) != 1 || got[0] != crawlID("soon") {
			t.Errorf("overdue are %v; want soon", got)
		}
		if err := s.StopCrawl(t.Context(), crawlID("soon"), docindex.Expired); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.PurgeCrawl(t.Context(), crawlID("soon"), nil); n != 1 || err != nil {
		t.Errorf("%d purged, %v; want 1", n, err)
	}
	if got := overdue(); len(got) != 0 {
		t.Errorf("overdue are %v after the purge", got)
	}
	p := crawlPut("late", "http://a.test/2", 0)
	p.Metadata = fmt.Appendf(nil, `{"appid":["app"],"expires":["%d"]}`, start.Unix()+20)
	put(t, s, p, crawlPut("late", "http://a.test/3", 0)) // the last put that names an expiry counts
	time.Sleep(10 * time.Second)
	if got := overdue(); len(got) != 1 || got[0] != crawlID("late") {
		t.Errorf("overdue are %v; want late", got)
	}
}

// A put sets the expiry of its crawl, whether its URL is new or known. An update that completes its
// document does not, nor does an outcome that schedules its document again.
func expiryIsSaid(t *testing.T, s docindex.Store) {
	start := time.Now().Unix()
	says := func(in int64) docindex.Put {
		p := crawlPut("c", "http://a.test/1", 0)
		p.Metadata = fmt.Appendf(nil, `{"appid":["app"],"expires":["%d"],"spiderid":["link"]}`, start+in)
		return p
	}
	want := func(when string, in int64) {
		t.Helper()
		if v := pendingReport(t, s, "c", 9, nil); v.Crawls[0].Expires != start+in {
			t.Errorf("%s: it expires at %d; want %d", when, v.Crawls[0].Expires, start+in)
		}
	}
	put(t, s, says(1000), crawlPut("c", "http://b.test/1", 0))
	want("put", 1000)
	put(t, s, says(500))
	want("put again", 500)
	put(t, s, crawlPut("c", "http://a.test/1", 0))
	want("put again, saying nothing", 500)
	b := take(t, s, 1)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Again: start, Metadata: says(1000).Metadata})
	report(t, s, &o)
	want("fetched again", 500)
	news := says(700)
	news.Update = true
	put(t, s, news)
	want("news", 700)
	news = says(900)
	news.Update, news.Due = true, docindex.Never
	put(t, s, news)
	want("its end", 700)
	put(t, s, says(800))
	want("put again when it has ended", 800)
	other := says(100)
	other.Metadata = fmt.Appendf(nil, `{"appid":["other"],"expires":["%d"]}`, start+5000)
	put(t, s, other)
	want("put by another application", 800)
	endless := crawlPut("c", "http://c.test/1", 0)
	endless.NoExpiry = true
	put(t, s, endless)
	want("put with a crawl that is to go on for ever", -start)
	put(t, s, says(600))
	want("put again", 600)
	endless = crawlPut("c", "http://a.test/1", 0)
	endless.NoExpiry = true
	put(t, s, endless)
	want("known, with a crawl that is to go on for ever", -start)
	time.Sleep(600 * time.Second)
	if ends, err := s.CrawlsToEnd(t.Context(), time.Now(), 10); err != nil || len(ends) != 0 {
		t.Errorf("overdue are %v, %v; want none of a crawl that goes on for ever", ends, err)
	}
	put(t, s, says(800))
	want("put once more", 800)
	time.Sleep(199 * time.Second)
	if ends, err := s.CrawlsToEnd(t.Context(), time.Now(), 10); err != nil || len(ends) != 0 {
		t.Errorf("overdue are %v, %v; want none", ends, err)
	}
	time.Sleep(time.Second)
	if ends, err := s.CrawlsToEnd(t.Context(), time.Now(), 10); err != nil || len(ends) != 1 ||
		ends[0].CrawlID != crawlID("c") {
		t.Errorf("overdue are %v, %v; want it", ends, err)
	}
}

func finished(t *testing.T, s docindex.Store) {
	const grace = 10 * time.Second
	rounds := map[uint64]bool{0: true}
	want := func(ids ...docindex.FinishedCrawl) {
		t.Helper()
		got, err := s.FinishedCrawls(t.Context(), time.Now().Add(-grace), 10)
		for i := range got {
			if rounds[got[i].Epoch] {
				t.Errorf("round %d of %v is not a new one", got[i].Epoch, got[i].CrawlID)
			}
			rounds[got[i].Epoch] = true
			got[i].Epoch = 0
		}
		if err != nil || len(got) != len(ids) || len(ids) > 0 && !reflect.DeepEqual(got, ids) {
			t.Errorf("finished are %v, %v; want %v", got, err, ids)
		}
	}
	put(t, s, crawlPut("c", "http://a.test/1", 0), crawlPut("c", "http://b.test/1", 0),
		crawlPut("stopped", "http://c.test/1", 0))
	time.Sleep(time.Minute)
	want()
	b := take(t, s, 3)
	stopCrawl(t, s, "stopped", nil)
	want()
	end(t, s, b)
	time.Sleep(grace - time.Millisecond)
	want()
	put(t, s, crawlPut("c", "http://a.test/2", 0))
	time.Sleep(time.Minute)
	want()
	end(t, s, take(t, s, 1))
	time.Sleep(grace)
	want(docindex.FinishedCrawl{CrawlID: crawlID("c"), Done: 3})
	time.Sleep(time.Minute)
	want() // once
	put(t, s, crawlPut("c", "http://a.test/3", 0))
	end(t, s, take(t, s, 1))
	time.Sleep(grace)
	want(docindex.FinishedCrawl{CrawlID: crawlID("c"), Done: 4})
}

func deletedCrawl(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://a.test/1", 0), crawlPut("c", "http://a.test/2", 0),
		crawlPut("c", "http://b.test/", 0))
	b := take(t, s, 1)
	if n, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("c")}); n != 3 || err != nil {
		t.Errorf("Delete = %d, %v; want 3", n, err)
	}
	wantPendingReport(t, pendingReport(t, s, "", 9, nil), docindex.PendingReport{})
	end(t, s, b)
	put(t, s, crawlPut("c", "http://a.test/1", 0))
	if v := pendingReport(t, s, "c", 9, nil); v.Total != 1 {
		t.Errorf("%d pending; want the new one", v.Total)
	}
	stopCrawl(t, s, "c", nil)
	if _, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("c")}); err != nil {
		t.Fatal(err)
	}
	if res := put(t, s, crawlPut("c", "http://a.test/1", 0)); res.Dropped != 1 {
		t.Errorf("put after the deletion of a stopped crawl: %+v; want it dropped", res)
	}
}

func deletedAtSlots(t *testing.T, s docindex.Store) {
	for i := range 1200 {
		put(t, s, docindex.Put{URL: fmt.Appendf(nil, "http://a.test/%d", i), Crawl: []byte("c")})
	}
	put(t, s, urls("http://a.test/other")...)
	held := take(t, s, 1100)
	told := map[string]bool{}
	s.OnDelete(func(o *docindex.Outcomes) {
		for i := range o.Len() {
			told[string(o.At(i).DocID)] = true
		}
		put(t, s, docindex.Put{URL: []byte("http://a.test/1"), Crawl: []byte("c")}) // it can be asked meanwhile
		b := take(t, s, 1)
		for i := range b.Len() {
			if told[string(b.At(i).DocID)] {
				t.Errorf("DOC_ID %s is given again before it is forgotten", b.At(i).DocID)
			}
		}
	})
	if _, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("c")}); err != nil {
		t.Fatal(err)
	}
	for i := range held.Len() {
		if c := held.At(i); told[string(c.DocID)] == (string(c.URL) == "http://a.test/other") {
			t.Errorf("%s %s: told %v", c.DocID, c.URL, told[string(c.DocID)])
		}
	}
}

// An update leaves the document in its crawl. An update with another appid is of another document.
func changesCrawl(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://a.test/1", 3))
	news := crawlPut("c", "http://a.test/1", 8)
	news.Update = true
	add(t, s, news)
	if v := pendingReport(t, s, "c", 9, nil); v.Crawls[0].Pending != pending(1, 8, 8) {
		t.Errorf("pending is %+v; want the new priority", v.Crawls[0].Pending)
	}
	news.Metadata, news.Priority = []byte(`{"appid":["other"]}`), 5
	if v := add(t, s, news); v[0] != docindex.New {
		t.Errorf("news by another application is answered %v; want that it is new", v[0])
	}
	other := docindex.CrawlID{Spider: docindex.DefaultSpider, App: "other"}
	for when, ends := range []bool{false, true} {
		if v, err := s.ReportPending(t.Context(), other, 9, nil); err != nil || v.Total != 1 {
			t.Errorf("%d: survey of the other is %+v, %v", when, v, err)
		}
		if v := pendingReport(t, s, "c", 9, nil); v.Crawls[0].Pending != pending(1, 8, 8) {
			t.Errorf("%d: pending is %+v; want what it was", when, v.Crawls[0].Pending)
		}
		if ends {
			break
		}
		again := crawlPut("c", "http://a.test/2", 1)
		again.Metadata = []byte(`{"appid":["other"],"x":["y"]}`)
		add(t, s, again)
		news := docindex.Put{URL: again.URL, Crawl: again.Crawl, Update: true, Due: docindex.Never}
		if v := add(t, s, news); v[0] != docindex.Changed {
			t.Errorf("news without an application is answered %v; want it to be of the only document", v[0])
		}
	}
}

func crawlCounts(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://a.test/1", 0), crawlPut("c", "http://b.test/1", 0),
		crawlPut("d", "http://a.test/1", 0), crawlPut("e", "http://a.test/1", 0))
	put(t, s, crawlPut("late", "http://b.test/9", -9))
	b := take(t, s, 1)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Attempts: 3})
	for range 2 {
		report(t, s, &o) // the second report changes nothing
	}
	stopCrawl(t, s, "d", nil)
	put(t, s, crawlPut("d", "http://x.test/", 0))
	if err := s.StopCrawl(t.Context(), crawlID("late"), docindex.Expired); err != nil {
		t.Fatal(err)
	}
	if n, err := s.PurgeCrawl(t.Context(), crawlID("late"), nil); n != 1 || err != nil {
		t.Fatalf("%d purged, %v; want 1", n, err)
	}
	var sum docindex.CrawlCounts
	counts := CrawlCounts(t, s, 2)
	for _, c := range counts {
		sum.Pending += c.Pending
		sum.Done += c.Done
		sum.Purged += c.Purged
		sum.Expired += c.Expired
		sum.Sent += c.Sent
		sum.Dropped += c.Dropped
	}
	want := docindex.CrawlCounts{Pending: 2, Done: 1, Sent: 3, Purged: 2, Expired: 1, Dropped: 1}
	if len(counts) != 3 || counts[2].CrawlID != (docindex.CrawlID{}) || sum != want {
		t.Errorf("counts are %+v; want 2 crawls and the rest, in all %+v", counts, want)
	}
	call(t, s, any)
	served := uint64(0)
	for _, c := range CrawlCounts(t, s, 9) {
		served += c.Sent
	}
	if served != 5 {
		t.Errorf("%d were sent; want 2 more, to a client", served)
	}
}

// A document whose outcome schedules it again belongs to the crawl that the outcome's metadata and
// crawl ID name.
func fetchedAgain(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://www.a.test/1", 3))
	b := take(t, s, 1)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Kind: docindex.Done,
		Again: time.Now().Unix() + 60, Metadata: crawlPut("c", "", 0).Metadata})
	report(t, s, &o)
	wantPendingReport(t, pendingReport(t, s, "c", 9, nil), docindex.PendingReport{Total: 1, Domains: 1,
		Count: 1, Crawls: []docindex.CrawlPending{
			{Crawl: "c", Pending: pending(1, 3, 3), Distinct: 1,
				Domains: []docindex.DomainPending{{Domain: "a.test", Pending: pending(1, 3, 3)}}},
		}})
	time.Sleep(time.Hour)
	b = take(t, s, 1)
	stopCrawl(t, s, "c", nil)
	o.Reset()
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Kind: docindex.Done,
		Again: time.Now().Unix() + 60, Metadata: crawlPut("c", "", 0).Metadata})
	report(t, s, &o)
	wantStates(t, s, 0, 0, 1) // nothing of a stopped crawl is
}

func deletedQueue(t *testing.T, s docindex.Store) {
	other := crawlPut("c", "http://www.a.test/2", 9)
	other.Metadata = []byte(`{"appid":["other"]}`)
	elsewhere := crawlPut("c", "http://b.test/1", 4)
	elsewhere.Key = []byte("www.a.test")
	put(t, s, crawlPut("c", "http://www.a.test/1", 1), other, elsewhere,
		crawlPut("c", "http://a.test/1", 2), crawlPut("d", "http://www.a.test/1", 5))
	if b := take(t, s, 1); b.Len() != 1 { // one of them is in transit
		t.Fatalf("%d candidates", b.Len())
	}
	call(t, s, docindex.Request{AnyCrawl: true, MaxQueues: 1, PerQueue: 1, Lease: time.Hour})
	if n, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("c"),
		Key: []byte("www.a.test")}); n != 3 || err != nil {
		t.Errorf("Delete = %d, %v; want 3", n, err)
	}
	var sum docindex.CrawlCounts
	for _, c := range CrawlCounts(t, s, 10) {
		sum.Pending += c.Pending
		sum.InTransit += c.InTransit
		sum.Done += c.Done
	}
	if sum.Pending+sum.InTransit != 2 || sum.Done != 0 {
		t.Errorf("counts are %+v; want 2 documents left, and none done", sum)
	}
	if v, err := s.ReportPending(t.Context(), docindex.CrawlID{Spider: docindex.DefaultSpider, App: "other",
		Crawl: "c"}, 9, nil); err != nil || v.Total != 0 {
		t.Errorf("survey of the other is %+v, %v; want nothing", v, err)
	}
}
