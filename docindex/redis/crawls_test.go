package redis

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/internal/testkit/redistest"
)

func TestCrawls(t *testing.T) {
	server := redistest.Start(t)
	f := newFerry()
	defer close(f.jobs)
	indextest.RunCrawls(t, 10, func(t *testing.T) docindex.Store { return audit(t, f.open(t, server.Addr())) })
}

func crawlID(crawl string) docindex.CrawlID {
	return docindex.CrawlID{Spider: docindex.DefaultSpider, App: "app", Crawl: crawl}
}

// of is a document of a crawl that expires then; 0: it does not say.
func of(crawl, url string, expires int64) docindex.Put {
	p := docindex.Put{URL: []byte(url), Crawl: []byte(crawl), Metadata: []byte(`{"appid":["app"]}`)}
	if expires > 0 {
		p.Metadata = fmt.Appendf(nil, `{"appid":["app"],"expires":["%d"]}`, expires)
	}
	return p
}

func putOf(t *testing.T, s docindex.Store, puts ...docindex.Put) docindex.PutResult {
	t.Helper()
	var p docindex.Puts
	for _, one := range puts {
		if err := p.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.Put(t.Context(), &p)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (d *daemons) unix() int64 { return d.now.Load() / 1e6 }

func (d *daemons) overdue(s *Store) []docindex.CrawlEnd {
	d.t.Helper()
	got, err := s.CrawlsToEnd(d.t.Context(), time.UnixMicro(d.now.Load()), 10)
	if err != nil {
		d.t.Fatal(err)
	}
	return got
}

func (d *daemons) wantOverdue(what string, s *Store, want ...docindex.CrawlEnd) {
	d.t.Helper()
	if got := d.overdue(s); !slices.Equal(got, want) {
		d.t.Errorf("%s: overdue are %v; want %v", what, got, want)
	}
}

// finished are the crawls that nothing was open of for a second, and their rounds.
func (d *daemons) finished(s *Store) (names []string, rounds []uint64) {
	d.t.Helper()
	got, err := s.FinishedCrawls(d.t.Context(), time.UnixMicro(d.now.Load()).Add(-time.Second), 10)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, one := range got {
		names, rounds = append(names, fmt.Sprintf("%s %d", one.Crawl, one.Done)), append(rounds, one.Epoch)
	}
	return names, rounds
}

func (d *daemons) wantFinished(what string, s *Store, names ...string) {
	d.t.Helper()
	got, _ := d.finished(s)
	want(d.t, what, got, names...)
}

func told(t *testing.T, s *Store, crawl string, round uint64) {
	t.Helper()
	if err := s.AckCrawlEnd(t.Context(), crawlID(crawl), round); err != nil {
		t.Fatal(err)
	}
}

func refuse(t *testing.T, s *Store, crawl string, why docindex.Kind) {
	t.Helper()
	if err := s.StopCrawl(t.Context(), crawlID(crawl), why); err != nil {
		t.Fatal(err)
	}
}

func purge(t *testing.T, s *Store, crawl string, want int) {
	t.Helper()
	n, err := s.PurgeCrawl(t.Context(), crawlID(crawl), func(*docindex.Outcomes) (int, error) { return 0, nil })
	if n != want || err != nil {
		t.Errorf("%d of crawl %s purged, %v; want %d", n, crawl, err, want)
	}
}

// TestFinishedOnce has a crawl finish: one of the daemons tells of it, and if it is no more before
// that, the other.
func TestFinishedOnce(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	for i := range 20 {
		putOf(t, a, of("c", fmt.Sprintf("http://h%d.test/", i), 0))
	}
	end(t, b, take(t, b))
	d.wantFinished("at once", a)
	putOf(t, a, of("c", "http://h0.test/2", 0))
	d.pass(time.Minute / 2)
	d.wantFinished("while one is open", a)
	end(t, b, take(t, b))
	d.pass(time.Second)
	d.wantFinished("the first that looks", a, "c 21")
	d.wantFinished("the other", b)
	d.wantFinished("the first once more", a)
	d.pass(testLease + time.Millisecond) // a is not heard of
	d.wantFinished("the other, when the first is no more", b)
	d.pass(time.Second)
	got, rounds := d.finished(b)
	want(t, "the other, a second after that", got, "c 21")
	told(t, b, "c", rounds[0])
	c := d.start()
	d.pass(testLease + time.Second)
	d.wantFinished("once it is told", c)
	putOf(t, c, of("c", "http://h0.test/3", 0))
	end(t, c, take(t, c))
	told(t, b, "c", rounds[0]) // late
	d.pass(time.Second)
	d.wantFinished("after more work", c, "c 22")
	checkCounts(t, c)
}

// TestExpiresOnce has a crawl expire: one of the daemons ends it, and if it is no more before that
// was told, the other.
func TestExpiresOnce(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	soon := docindex.CrawlEnd{CrawlID: crawlID("soon"), Expired: true}
	putOf(t, a, of("soon", "http://a.test/", d.unix()+10), of("soon", "http://b.test/", 0))
	d.wantOverdue("at first", a)
	d.pass(10 * time.Second)
	d.wantOverdue("the first that looks", a, soon)
	d.wantOverdue("the other", b)
	d.wantOverdue("the first, before the purge", a, soon)
	refuse(t, a, "soon", docindex.Expired)
	d.wantOverdue("the other", b)
	purge(t, a, "soon", 2)
	d.wantOverdue("after the purge", a)
	d.pass(testLease + time.Millisecond)
	d.wantOverdue("the other, as nobody was told", b, soon)
	refuse(t, b, "soon", docindex.Expired)
	purge(t, b, "soon", 2)
	told(t, b, "soon", 0)
	d.pass(testLease + time.Millisecond)
	d.wantOverdue("once it is told", d.start())
	purge(t, b, "soon", 0)
}

// TestPurgeGoesOn has a daemon be no more between the refusal and the purge.
func TestPurgeGoesOn(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	putOf(t, a, of("c", "http://a.test/", 0))
	refuse(t, a, "c", docindex.Stopped)
	d.wantOverdue("while that daemon lives", b)
	d.pass(testLease + time.Millisecond)
	d.wantOverdue("after that", b, docindex.CrawlEnd{CrawlID: crawlID("c")})
	purge(t, b, "c", 1)
	d.wantOverdue("after the purge", b)
	d.pass(testLease + time.Millisecond)
	d.wantOverdue("and later", d.start())
}

// TestExpirySaidLast has shards hear of different times when a crawl expires; what was said last
// holds, also when the documents with which that was said are gone.
func TestExpirySaidLast(t *testing.T) {
	d := newDaemons(t)
	a := d.start()
	hosts := []string{"a.test", "b.test", "c.test", "d.test"}
	for i, host := range hosts {
		putOf(t, a, of("c", "http://"+host+"/", d.unix()+int64(10*(i+1))))
	}
	for range 3 {
		d.pass(10 * time.Second)
		d.wantOverdue("too soon", a)
	}
	if v, err := a.ReportPending(t.Context(), crawlID("c"), 9, nil); err != nil || v.Crawls[0].Expires != d.unix()+10 {
		t.Errorf("survey is %+v, %v; want that it expires in 10 s", v, err)
	}
	if _, err := a.Delete(t.Context(), docindex.Scope{Crawl: []byte("c"), Key: []byte("d.test")}); err != nil {
		t.Fatal(err)
	}
	d.wantOverdue("before the last time", a)
	checkCounts(t, a)
	d.pass(10 * time.Second)
	d.wantOverdue("by what was said last", a, docindex.CrawlEnd{CrawlID: crawlID("c"), Expired: true})
	if _, err := a.Delete(t.Context(), docindex.Scope{Crawl: []byte("c")}); err != nil {
		t.Fatal(err)
	}
	d.wantOverdue("when all is deleted", a)
	putOf(t, a, of("c", "http://a.test/", 0))
	d.pass(time.Hour)
	d.wantOverdue("when it is another crawl of that name", a)
	checkCounts(t, a)
}

// TestCrawlsAtOnce has several daemons do things at the same time.
func TestCrawlsAtOnce(t *testing.T) {
	addr := redistest.Start(t).Addr()
	var all []*Store
	for range 3 {
		s := patientStore(Config{Addrs: []string{addr}, Lease: testLease}, nil)
		t.Cleanup(func() { s.Close() })
		reach(t, s)
		all = append(all, s)
	}
	steps := 200
	if testing.Short() {
		steps = 50
	}
	var working sync.WaitGroup
	for i, s := range all {
		working.Go(func() { work(t, s, rand.New(rand.NewPCG(7, uint64(i))), steps) })
	}
	working.Wait()
	checkCounts(t, all[0])
	for _, s := range all {
		checkSnapshot(t, s)
	}
	counts := indextest.CrawlCounts(t, all[0], 2)
	if len(counts) != 3 {
		t.Errorf("%d counts; want 2 crawls and the others", len(counts))
	}
	states, n, err := all[1].ListCrawls(t.Context(), "", 100)
	if err != nil || n != len(states) {
		t.Fatalf("%d of %d crawls, %v", len(states), n, err)
	}
	var sum docindex.CrawlCounts
	for _, c := range states {
		sum.Pending, sum.InTransit = sum.Pending+c.Scheduled+c.AtSlots, sum.InTransit+c.AtClients
		sum.Done, sum.Purged, sum.Dropped = sum.Done+c.Done, sum.Purged+c.Purged, sum.Dropped+c.Dropped
	}
	for _, c := range counts {
		sum.Pending, sum.InTransit = sum.Pending-c.Pending, sum.InTransit-c.InTransit
		sum.Done, sum.Purged, sum.Dropped = sum.Done-c.Done, sum.Purged-c.Purged, sum.Dropped-c.Dropped
	}
	if !reflect.DeepEqual(sum, docindex.CrawlCounts{}) {
		t.Errorf("crawls as counted differ from those listed by %+v", sum)
	}
}

// work puts, takes, ends, gives back and stops.
func work(t *testing.T, s *Store, rng *rand.Rand, steps int) {
	fail := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	for range steps {
		crawl := fmt.Sprintf("c%d", rng.IntN(6))
		var p docindex.Puts
		for range 5 {
			one := of(crawl, fmt.Sprintf("http://h%d.test/%d", rng.IntN(9), rng.IntN(30)), 0)
			one.Priority, one.Update = int32(rng.IntN(3)), rng.IntN(3) == 0
			fail(p.Add(one))
		}
		_, err := s.Put(t.Context(), &p)
		fail(err)
		var b docindex.Batch
		fail(s.Candidates(t.Context(), 4, nil, &b))
		var done, back docindex.Outcomes
		for i := range b.Len() {
			o := []*docindex.Outcomes{&done, &back}[rng.IntN(2)]
			o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL})
		}
		fail(s.Outcomes(t.Context(), &done))
		fail(s.Return(t.Context(), &back))
		switch rng.IntN(30) {
		case 0:
			fail(s.StopCrawl(t.Context(), crawlID(crawl), docindex.Stopped))
			_, err := s.PurgeCrawl(t.Context(), crawlID(crawl), func(*docindex.Outcomes) (int, error) { return 0, nil })
			fail(err)
		case 1:
			_, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte(crawl)})
			fail(err)
		}
		_, err = s.ReportPending(t.Context(), docindex.CrawlID{Spider: docindex.DefaultSpider, App: "app"}, 100, &back)
		fail(err)
	}
}

// TestManyCrawls: a crawl goes out whose hosts are not rejected, however many crawls have only
// others.
func TestManyCrawls(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	hosts := hostsOfAShard(6)
	var puts []docindex.Put
	for i := range 450 {
		puts = append(puts, of(fmt.Sprintf("c%d", i), "http://"+hosts[0]+"/", 0))
	}
	for _, host := range hosts[1:] {
		puts = append(puts, of("good", "http://"+host+"/", 0))
	}
	putOf(t, s, puts...)
	for i, host := range hosts[1:] {
		var b docindex.Batch
		rejected := slices.Delete(slices.Clone(hosts), i+1, i+2)
		if err := s.Candidates(t.Context(), 10, rejected, &b); err != nil {
			t.Fatal(err)
		}
		want(t, "all but one host rejected", urls(&b), "http://"+host+"/")
	}
}

// TestCrawlsWithoutQueues: crawls of which the slots may be served nothing are not among those that
// they look at.
func TestCrawlsWithoutQueues(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	host := hostsOfAShard(1)[0]
	for i := range 3 {
		putOf(t, s, of(fmt.Sprintf("c%d", i), "http://"+host+"/", 0))
	}
	ready := func() []string {
		c := reach(t, s)
		all, err := c.Do(t.Context(), c.B().Smembers().Key(s.bases[shardOf(host)]+":r1").Build()).AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		return all
	}
	want(t, "crawls with a host that is free", ready(), "c0", "c1", "c2")
	call(t, s)
	want(t, "crawls while a client has their host", ready())
}

// hostsOfAShard makes names of hosts that are in one shard.
func hostsOfAShard(n int) (all []string) {
	for i := 0; len(all) < n; i++ {
		if name := fmt.Sprintf("h%d.test", i); shardOf(name) == 0 {
			all = append(all, name)
		}
	}
	return all
}
