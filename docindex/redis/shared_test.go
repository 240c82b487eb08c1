package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/export"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
	"urlserver/internal/testkit/redistest"
)

// daemons are stores of one Redis, with a time of their own.
type daemons struct {
	t    *testing.T
	addr string
	now  atomic.Int64 // µs
}

func newDaemons(t *testing.T) *daemons {
	t.Helper()
	d := &daemons{t: t, addr: redistest.Start(t).Addr()}
	d.now.Store(time.Now().UnixMicro())
	return d
}

func (d *daemons) start() *Store {
	s := patientStore(Config{Addrs: []string{d.addr}, Lease: testLease}, d.now.Load)
	d.t.Cleanup(func() { s.Close() })
	reach(d.t, s)
	return s
}

func (d *daemons) pass(by time.Duration) { d.now.Add(by.Microseconds()) }

// put stores a URL of each of n hosts.
func put(t *testing.T, s docindex.Store, n int) {
	t.Helper()
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf("http://h%d.test/", i))
	}
	putURLs(t, s, "", texts...)
}

func putURLs(t *testing.T, s docindex.Store, key string, texts ...string) {
	t.Helper()
	var p docindex.Puts
	for _, text := range texts {
		if err := p.Add(docindex.Put{URL: []byte(text), Key: []byte(key)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, s *Store) *docindex.Batch {
	t.Helper()
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 100, nil, &b); err != nil {
		t.Fatal(err)
	}
	return &b
}

func urls(b *docindex.Batch) (all []string) {
	for i := range b.Len() {
		all = append(all, string(b.At(i).URL))
	}
	slices.Sort(all)
	return all
}

func end(t *testing.T, s *Store, b *docindex.Batch) {
	t.Helper()
	if err := tryEnd(t, s, b); err != nil {
		t.Fatal(err)
	}
}

func tryEnd(t *testing.T, s *Store, b *docindex.Batch) error {
	var o docindex.Outcomes
	for i := range b.Len() {
		o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL})
	}
	return s.Outcomes(t.Context(), &o)
}

func call(t *testing.T, s *Store) (all []string) {
	t.Helper()
	err := s.Serve(t.Context(), docindex.Request{AnyCrawl: true, Lease: testLease}, func(h *docindex.Served) error {
		for i := range h.Len() {
			all = append(all, string(h.At(i).URL))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q; want %q", what, got, want)
	}
}

// TestDaemonDies has one daemon take all and be no more: the other has it when the lease has
// passed, not before.
func TestDaemonDies(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	all := []string{"http://a.test/", "http://b.test/", "http://c.test/1", "http://c.test/2"}
	putURLs(t, a, "", all[:2]...)
	putURLs(t, a, "mixed", all[2:]...)
	had := take(t, a)
	want(t, "the first daemon takes", urls(had), all...)
	want(t, "the other takes", urls(take(t, b)))
	want(t, "and serves", call(t, b))
	d.pass(testLease)
	want(t, "after just the lease", urls(take(t, b)))
	d.pass(time.Millisecond)
	got := take(t, b)
	want(t, "after the lease", urls(got), all...)
	end(t, a, had) // it was frozen only: what it did counts
	if n := indextest.Count(t, b, nil); n.Completed != 4 {
		t.Errorf("after late outcomes %+v; want all completed", n)
	}
	putURLs(t, a, "", "http://c.test/3")
	d.pass(time.Hour)
	want(t, "the host of the mixed queue is free again", call(t, b), "http://c.test/3")
}

// TestDaemonStays has a daemon that takes nothing for long, and says that it is there.
func TestDaemonStays(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	put(t, a, 3)
	take(t, a)
	for range 5 {
		d.pass(testLease / 2)
		a.sweep(t.Context())
		want(t, "of a daemon that lives", urls(take(t, b)))
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := take(t, b); got.Len() != 3 {
		t.Errorf("%d URLs of a daemon that has ended are due; want 3 at once", got.Len())
	}
}

// TestAnswerLost has a take of which nobody heard.
func TestAnswerLost(t *testing.T) {
	d := newDaemons(t)
	a := d.start()
	all := []string{"http://a.test/", "http://b.test/", "http://c.test/"}
	putURLs(t, a, "", all[:2]...)
	putURLs(t, a, "mixed", all[2])
	before := a.heard
	want(t, "taken", urls(take(t, a)), all...)
	a.heard = before
	want(t, "taken once more", urls(take(t, a)), all...)
	want(t, "of what was heard of", urls(take(t, a)))
	if n := indextest.Count(t, a, nil); n.InTransit != 3 || n.Scheduled != 0 {
		t.Errorf("counts are %+v; want 3 in transit", n)
	}
}

// TestDoorsOfDaemons has one daemon's slots and another's calls at the same hosts.
func TestDoorsOfDaemons(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	putURLs(t, a, "", "http://a.test/1", "http://a.test/2", "http://b.test/1")
	var one docindex.Batch
	if err := a.Candidates(t.Context(), 1, []string{"b.test"}, &one); err != nil {
		t.Fatal(err)
	}
	want(t, "calls of the other daemon", call(t, b), "http://b.test/1")
	end(t, a, &one)
	d.pass(2 * time.Second)
	want(t, "when the slots are through", call(t, b), "http://a.test/2")
}

// TestAway has Redis go and come back, without its scripts.
func TestAway(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := patientStore(Config{Addrs: []string{server.Addr()}, Lease: testLease}, nil)
	t.Cleanup(func() { s.Close() })
	put(t, s, 10)
	had := take(t, s)
	server.Kill()
	if n, err := s.Count(t.Context(), nil); !errors.Is(err, docindex.ErrUnavailable) {
		t.Errorf("when Redis has gone %+v is counted, %v; want that it does not answer", n, err)
	}
	if all, err := s.Crawls(t.Context()); !errors.Is(err, docindex.ErrUnavailable) {
		t.Errorf("when Redis has gone the crawls are %q, %v; want that it does not answer", all, err)
	}
	var p docindex.Puts
	if err := p.Add(docindex.Put{URL: []byte("http://late.test/")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), &p); err == nil || p.Verdict(0) != docindex.Unsettled {
		t.Errorf("Put without Redis: %v, %v; want an error and no verdict", p.Verdict(0), err)
	}
	if !server.Restart() {
		t.Fatal("redis-server does not come back")
	}
	eventually(t, "the store", func() bool { _, err := s.Put(t.Context(), &p); return err == nil })
	// Of several connections one that works again says nothing of the others.
	eventually(t, "the end of what was taken", func() bool { return tryEnd(t, s, had) == nil })
	var n docindex.Counts
	eventually(t, "an answer", func() (ok bool) {
		var err error
		n, err = s.Count(t.Context(), nil)
		return err == nil
	})
	if n.Completed != 10 || n.Scheduled != 1 {
		t.Errorf("after a restart of Redis %+v; want 10 completed and 1 scheduled", n)
	}
}

// TestSomeoneElse wakes a daemon for what another one has put.
func TestSomeoneElse(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	woken := 0
	b.OnWake(func() { woken++ })
	b.sweep(t.Context())
	put(t, a, 1)
	before := woken
	b.sweep(t.Context())
	if woken != before+1 {
		t.Errorf("woken %d times by what another daemon put; want once", woken-before)
	}
	b.sweep(t.Context())
	if woken != before+1 {
		t.Error("woken though nothing came")
	}
}

// TestUnfinishedDelete has a daemon die between dropping a queue and forgetting its URLs.
func TestUnfinishedDelete(t *testing.T) {
	d := newDaemons(t)
	a := d.start()
	putURLs(t, a, "", "http://a.test/1", "http://a.test/2")
	shard := shardOf("a.test")
	if _, err := a.one(t.Context(), shard, dropScript, "@"+nameOf("", "a.test")); err != nil {
		t.Fatal(err)
	}
	putURLs(t, a, "", "http://a.test/1")
	a.sweep(t.Context())
	c, err := a.connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := c.Do(t.Context(), c.B().Keys().Pattern(a.bases[shard]+":b:*").Build()).AsStrSlice()
	if err != nil || len(keys) != 1 {
		t.Errorf("left are the URLs of %q, %v; want those of one queue", keys, err)
	}
	want(t, "of the new queue", urls(take(t, a)), "http://a.test/1")
}

func TestNobodyThere(t *testing.T) {
	s := newStore(Config{Addrs: []string{"127.0.0.1:1"}, Lease: testLease}, nil)
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 1, nil, &b); err == nil {
		t.Error("candidates without Redis are no error")
	}
	if n, err := s.Count(t.Context(), nil); !errors.Is(err, docindex.ErrUnavailable) {
		t.Errorf("without Redis %+v is counted, %v; want that it does not answer", n, err)
	}
	if all, err := s.Crawls(t.Context()); !errors.Is(err, docindex.ErrUnavailable) {
		t.Errorf("without Redis the crawls are %q, %v; want that it does not answer", all, err)
	}
	if st := s.Stats(); st != (docindex.StoreStats{}) {
		t.Errorf("without Redis %+v is counted; want nothing", st)
	}
	if is, err := s.Active(t.Context()); is || !errors.Is(err, docindex.ErrUnavailable) {
		t.Errorf("without Redis calls are served: %v, %v; want that it does not answer", is, err)
	}
	if all, err := s.CrawlCounts(t.Context(), 9); !errors.Is(err, docindex.ErrUnavailable) {
		t.Errorf("without Redis the counts of crawls are %+v, %v; want that it does not answer", all, err)
	}
	if _, err := s.Document(context.Background(), []byte("x")); err == nil || errors.Is(err, docindex.ErrUnknown) {
		t.Errorf("a document without Redis is %v; want another error than that it is unknown", err)
	}
}

// TestImport takes a dump of what was deleted since, and of another store.
func TestImport(t *testing.T) {
	d := newDaemons(t)
	a := d.start()
	other := memory.New()
	for _, s := range []docindex.Store{a, other} {
		putURLs(t, s, "", "http://a.test/1", "http://b.test/1")
	}
	var own, far bytes.Buffer
	if err := errors.Join(export.Write(t.Context(), a, &own), export.Write(t.Context(), other, &far)); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Delete(t.Context(), docindex.Scope{}); n != 2 || err != nil {
		t.Fatalf("Delete = %d, %v; want 2", n, err)
	}
	if res, err := export.Read(t.Context(), a, &own); err != nil || res.New != 2 || res.Renumbered != 2 {
		t.Errorf("of its own dump it takes %+v, %v; want 2 URLs with other DOC_IDs", res, err)
	}
	if n, err := a.Delete(t.Context(), docindex.Scope{}); n != 2 || err != nil {
		t.Fatalf("Delete = %d, %v; want 2", n, err)
	}
	if res, err := export.Read(t.Context(), a, &far); err != nil || res.New != 2 || res.Renumbered != 0 {
		t.Errorf("of another's dump it takes %+v, %v; want 2 URLs", res, err)
	}
	for _, id := range []string{"1", "2"} {
		if doc, err := a.Document(t.Context(), []byte(id)); err != nil || string(doc.DocID) != id {
			t.Errorf("Document(%s) = %s, %v", id, doc.DocID, err)
		}
	}
	end(t, a, take(t, a))
	if n, err := a.Delete(t.Context(), docindex.Scope{}); n != 2 || err != nil {
		t.Fatalf("Delete = %d, %v; want 2", n, err)
	}
	c, err := a.connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := c.Do(t.Context(), c.B().Keys().Pattern("*:ids").Build()).AsStrSlice()
	if err != nil || len(keys) != 0 {
		t.Errorf("DOC_IDs of forgotten documents are kept in %q, %v", keys, err)
	}
}
