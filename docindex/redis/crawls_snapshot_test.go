package redis

import (
	"fmt"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/internal/testkit/redistest"
)

// TestMirror has one daemon ask while another one works, across all that makes it read anew.
func TestMirror(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	pending := func(what string, want uint64) {
		t.Helper()
		v, err := a.ReportPending(t.Context(), crawlID(""), 10, nil)
		if err != nil || v.Total != want {
			t.Errorf("%s: %d pending, %v; want %d", what, v.Total, err, want)
		}
		checkSnapshot(t, a)
	}
	pending("at first", 0)
	putOf(t, b, of("c", "http://a.test/", d.unix()+100), of("d", "http://a.test/", 0), of("d", "http://b.test/", 0))
	pending("after a put", 3)
	had := take(t, b)
	pending("at the slots", 3)
	end(t, b, had)
	pending("when all are done", 0)
	for _, crawl := range []string{"c", "d"} {
		if _, err := b.Delete(t.Context(), docindex.Scope{Crawl: []byte(crawl)}); err != nil {
			t.Fatal(err)
		}
	}
	pending("when all are deleted", 0)
	if m := a.snapshotOf(nameOfCrawl(crawlID(""))); len(m.crawls) != 1 || m.crawls[nameOfCrawl(crawlID("c"))] == nil {
		t.Errorf("known are still %v; want that which is said to expire", m.crawls)
	}
	putOf(t, b, of("c", "http://a.test/", 0), of("d", "http://a.test/", 0))
	pending("when they are there again", 2)
	again := of("d", "http://a.test/", 0)
	again.Priority = 9
	if _, err := b.Delete(t.Context(), docindex.Scope{Crawl: []byte("d")}); err != nil {
		t.Fatal(err)
	}
	putOf(t, b, again)
	pending("when one is another of its name", 2)
	if _, err := b.Delete(t.Context(), docindex.Scope{Crawl: []byte("c")}); err != nil {
		t.Fatal(err)
	}
	pending("when one is deleted", 1)
	if _, err := b.Delete(t.Context(), docindex.Scope{Crawl: []byte("d")}); err != nil {
		t.Fatal(err)
	}
	shard := shardOf("k")
	for i := range 6 {
		var puts []docindex.Put
		for j := range 1000 {
			one := of("e", fmt.Sprintf("http://x%d-%d.test/", i, j), 0)
			one.Key = []byte("k")
			puts = append(puts, one)
		}
		putOf(t, b, puts...)
	}
	c := reach(t, a)
	if n, err := c.Do(t.Context(), c.B().Zcard().Key(a.bases[shard]+":kc").Build()).AsInt64(); err != nil ||
		n > 5000 || n == 0 {
		t.Errorf("%d changes are listed, %v; want 5000 at most", n, err)
	}
	pending("after more changes than are listed", 6000)
	d.pass(2 * 3600e9)
	putOf(t, b, of("c", "http://c.test/", 0))
	pending("when nobody had asked for long", 6001)
	for what, n := range map[time.Duration]int{snapshotLife - 10*time.Minute: 1, snapshotLife + time.Minute: 0} {
		if a.snapshotOf(nameOfCrawl(crawlID(""))); len(a.snapshots) != 1 {
			t.Fatal("there is none")
		}
		if a.dropSnapshots(time.Now().Add(what)); len(a.snapshots) != n {
			t.Errorf("%v after the last question there are %d; want %d", what, len(a.snapshots), n)
		}
	}
}

// TestMirrorOfAnother has Redis be another one, which knows nothing.
func TestMirrorOfAnother(t *testing.T) {
	server := redistest.Start(t)
	s := patientStore(Config{Addrs: []string{server.Addr()}, Lease: testLease}, nil)
	t.Cleanup(func() { s.Close() })
	reach(t, s)
	putOf(t, s, of("c", "http://a.test/", 0))
	if v, err := s.ReportPending(t.Context(), crawlID(""), 10, nil); err != nil || v.Total != 1 {
		t.Fatalf("%+v, %v; want 1 pending", v, err)
	}
	server.Kill()
	if !server.Restart() {
		t.Fatal("redis-server does not come back")
	}
	var v docindex.PendingReport
	eventually(t, "an answer", func() (ok bool) {
		var err error
		v, err = s.ReportPending(t.Context(), crawlID(""), 10, nil)
		return err == nil
	})
	if v.Total != 0 {
		t.Errorf("%+v; want nothing pending", v)
	}
}
