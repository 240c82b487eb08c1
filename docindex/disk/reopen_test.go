package disk_test

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
	"urlserver/urlserver/explain"
)

// again closes a store and opens it again.
func again(t *testing.T, s *disk.Store, path string) *disk.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, disk.Batch)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	return s
}

func putURLs(t *testing.T, s *disk.Store, puts ...docindex.Put) {
	t.Helper()
	var p docindex.Puts
	for _, put := range puts {
		if err := p.AddExact(put, docindex.HostOf(put.URL)); err != nil {
			t.Fatal(err)
		}
	}
	if res, err := s.Put(t.Context(), &p); err != nil || len(res.Refused) > 0 {
		t.Fatal(err, res)
	}
}

func urls(texts ...string) (puts []docindex.Put) {
	for _, text := range texts {
		puts = append(puts, docindex.Put{URL: []byte(text)})
	}
	return puts
}

func serve(t *testing.T, s docindex.Store, r docindex.Request) (all []string) {
	t.Helper()
	r.AnyCrawl = true
	if r.Lease == 0 {
		r.Lease = time.Hour
	}
	err := s.Serve(t.Context(), r, func(h *docindex.Served) error {
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
		t.Errorf("%s: got %q; want %q", what, got, want)
	}
}

func set(t *testing.T, s *disk.Store, which docindex.SettingKind, key string, value uint64) {
	t.Helper()
	if err := s.Set(t.Context(), docindex.Setting{Kind: which, Scope: docindex.Scope{Key: []byte(key)},
		Value: value}); err != nil {
		t.Fatal(err)
	}
}

func TestReopen(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, path string){
		"leases": reopenLeases, "servings": reopenServed, "settings": reopenSettings,
		"settings of queues to come": reopenPresets,
		"settings of hosts":          reopenHostOverrides,
		"delays of hosts":            reopenHostDelays,
		"slots":                      reopenSlots, "pauses": reopenPauses, "answers": reopenAnswers,
		"usual pauses": reopenUsual,
		"addresses":    reopenAddresses,
		"documents":    reopenDocuments,
		"deletions":    reopenDeleted,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, t.TempDir()) })
		})
	}
}

func reopenLeases(t *testing.T, path string) {
	s := open(t, path, disk.Batch)
	set(t, s, docindex.SetDelay, "", 0)
	putURLs(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/1")...)
	putURLs(t, s, docindex.Put{URL: []byte("http://c.test/1"), Key: []byte("any")})
	one := docindex.Request{PerQueue: 1, Lease: time.Minute}
	want(t, "first", serve(t, s, one), "http://a.test/1", "http://b.test/1", "http://c.test/1")
	leased := time.Now()
	putURLs(t, s, docindex.Put{URL: []byte("http://b.test/1"), Update: true, Due: docindex.Never})
	s = again(t, s, path)
	if n := indextest.Count(t, s, nil); n != (docindex.Counts{Scheduled: 2, InTransit: 2, Completed: 1,
		Queues: 3, Active: 2}) {
		t.Errorf("counts are %+v", n)
	}
	want(t, "opened again", serve(t, s, one))
	want(t, "more", serve(t, s, docindex.Request{PerQueue: 2, Lease: 2 * time.Minute}), "http://a.test/2")
	time.Sleep(time.Until(leased.Add(time.Minute - time.Millisecond)))
	want(t, "before the leases end", serve(t, s, one))
	s = again(t, s, path)
	want(t, "when they end", serve(t, s, docindex.Request{PerQueue: 9, Lease: time.Minute}),
		"http://a.test/1", "http://a.test/3", "http://c.test/1")
	time.Sleep(time.Minute - time.Millisecond)
	s = again(t, s, path)
	time.Sleep(time.Minute)
	want(t, "all", serve(t, s, docindex.Request{}), "http://a.test/1", "http://a.test/2", "http://a.test/3",
		"http://c.test/1")
}

func reopenServed(t *testing.T, path string) {
	s := open(t, path, disk.Batch)
	putURLs(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1")...)
	set(t, s, docindex.SetDelay, "a.test", 3600)
	want(t, "first", serve(t, s, docindex.Request{PerQueue: 1, MaxQueues: 1}), "http://a.test/1")
	s = again(t, s, path)
	want(t, "at once", serve(t, s, docindex.Request{}), "http://b.test/1")
	time.Sleep(time.Hour - time.Millisecond)
	s = again(t, s, path)
	want(t, "before the delay", serve(t, s, docindex.Request{}))
	time.Sleep(time.Millisecond)
	want(t, "after the delay", serve(t, s, docindex.Request{}), "http://a.test/1", "http://a.test/2", "http://b.test/1")
}

// reopenHostOverrides checks that the operator's settings of hosts survive a restart.
func reopenHostOverrides(t *testing.T, path string) {
	setHost := func(s *disk.Store, which docindex.SettingKind, host string, value int64) {
		t.Helper()
		err := s.Set(t.Context(), docindex.Setting{Kind: which, Scope: docindex.Scope{Key: []byte(host)},
			Host: true, Value: uint64(value)})
		if err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, path, disk.Batch)
	setHost(s, docindex.SetBlock, "blocked.test", time.Now().Unix()+99)
	setHost(s, docindex.SetBlock, "free.test", time.Now().Unix()+99)
	setHost(s, docindex.SetBlock, "free.test", 0)
	setHost(s, docindex.SetDelay, "slow.test", 50)
	setHost(s, docindex.SetDelay, "fast.test", 50)
	setHost(s, docindex.SetDelay, "fast.test", 0)
	putURLs(t, s, urls("http://slow.test/1", "http://slow.test/2")...)
	want(t, "first", serve(t, s, docindex.Request{PerQueue: 1}), "http://slow.test/1")
	s = again(t, s, path)
	putURLs(t, s, urls("http://blocked.test/1", "http://free.test/1", "http://fast.test/1")...)
	putURLs(t, s, docindex.Put{URL: []byte("http://slow.test/3"), Crawl: []byte("c")},
		docindex.Put{URL: []byte("http://blocked.test/2"), Crawl: []byte("c")})
	want(t, "opened again", serve(t, s, docindex.Request{}), "http://fast.test/1", "http://free.test/1")
	time.Sleep(50*time.Second - time.Millisecond)
	s = again(t, s, path)
	want(t, "before the delay", serve(t, s, docindex.Request{}))
	time.Sleep(time.Millisecond)
	if all := serve(t, s, docindex.Request{}); len(all) != 1 {
		t.Errorf("after the delay %q; want one of the slow host", all)
	}
	l, err := s.HostStatus(t.Context(), []byte("slow.test"))
	if err != nil || !l.AtFrontier.NotBefore.Equal(time.Now().Add(50*time.Second)) ||
		explain.Wait(&l.AtFrontier.Wait, "") != "the operator's delay of 50s" {
		t.Errorf("of the slow host: %+v, %v", l, err)
	}
	time.Sleep(51 * time.Second)
	s = again(t, s, path)
	if got := serve(t, s, docindex.Request{}); !slices.Contains(got, "http://blocked.test/1") ||
		!slices.Contains(got, "http://blocked.test/2") {
		t.Errorf("after the block %q; want both of the blocked host", got)
	}
	putURLs(t, s, docindex.Put{URL: []byte("http://late.test/1"), Update: true, Due: time.Now().Unix() + 1000})
	due := time.Unix(time.Now().Unix()+1000, 0)
	s = again(t, s, path)
	if l, err := s.HostStatus(t.Context(), []byte("late.test")); err != nil || !l.AtSlots.NotBefore.Equal(due) {
		t.Errorf("what is due later, of which nobody asked before: %+v, %v", l, err)
	}
}

// reopenHostDelays checks that the operator's delay of a host counts from the last request to it, at
// clients and at the slots, where no document of the host is in transit at the restart.
func reopenHostDelays(t *testing.T, path string) {
	s := open(t, path, disk.Batch)
	for _, host := range []string{"a.test", "b.test"} {
		putURLs(t, s, urls("http://"+host+"/1", "http://"+host+"/2")...)
		if err := s.Set(t.Context(), docindex.Setting{Kind: docindex.SetDelay, Host: true,
			Scope: docindex.Scope{Key: []byte(host)}, Value: 3600}); err != nil {
			t.Fatal(err)
		}
	}
	take := func(when string, want int) {
		t.Helper()
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 10, nil, &b); err != nil || b.Len() != want {
			t.Errorf("%s: %d candidates, %v; want %d", when, b.Len(), err, want)
		}
		var o docindex.Outcomes
		for i := range b.Len() {
			o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200})
		}
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "a client", serve(t, s, docindex.Request{MaxQueues: 1, PerQueue: 1, Lease: time.Second}), "http://a.test/1")
	take("the slots", 1)
	for range 3 {
		time.Sleep(20*time.Minute - time.Second)
		want(t, "before the hour", serve(t, s, docindex.Request{}))
		take("before the hour", 0)
		s = again(t, s, path)
		want(t, "opened again", serve(t, s, docindex.Request{}))
		take("opened again", 0)
	}
}

func reopenSettings(t *testing.T, path string) {
	s := open(t, path, disk.Batch)
	putURLs(t, s, urls("http://blocked.test/1", "http://limited.test/1", "http://limited.test/2",
		"http://slow.test/1", "http://slow.test/2")...)
	putURLs(t, s, docindex.Put{URL: []byte("http://limited.test/1"), Update: true, Due: docindex.Never})
	set(t, s, docindex.SetBlock, "blocked.test", uint64(time.Now().Unix()+100))
	set(t, s, docindex.SetLimit, "limited.test", 1)
	set(t, s, docindex.SetDelay, "", 50)
	set(t, s, docindex.SetActive, "", 0)
	s = again(t, s, path)
	if indextest.Active(t, s) {
		t.Error("it is active; want passive")
	}
	set(t, s, docindex.SetActive, "", 1)
	s = again(t, s, path)
	if !indextest.Active(t, s) {
		t.Error("it is passive; want active")
	}
	want(t, "first", serve(t, s, docindex.Request{PerQueue: 1}), "http://slow.test/1")
	time.Sleep(50*time.Second - time.Millisecond)
	want(t, "before the delay", serve(t, s, docindex.Request{PerQueue: 2}))
	time.Sleep(time.Millisecond)
	want(t, "after the delay", serve(t, s, docindex.Request{PerQueue: 2}), "http://slow.test/2")
	time.Sleep(51 * time.Second)
	want(t, "after the block", serve(t, s, docindex.Request{PerQueue: 2}), "http://blocked.test/1")
}

func reopenPresets(t *testing.T, path string) {
	s := open(t, path, disk.Batch)
	set(t, s, docindex.SetDelay, "a.test", 7)
	set(t, s, docindex.SetLimit, "b.test", 1)
	set(t, s, docindex.SetDelay, "b.test", 3)
	s = again(t, s, path)
	putURLs(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1", "http://b.test/2")...)
	s = again(t, s, path)
	want(t, "first", serve(t, s, docindex.Request{PerQueue: 1}), "http://a.test/1", "http://b.test/1")
	putURLs(t, s, docindex.Put{URL: []byte("http://b.test/1"), Update: true, Due: docindex.Never})
	time.Sleep(6 * time.Second)
	want(t, "later", serve(t, s, docindex.Request{PerQueue: 2}))
	time.Sleep(time.Second)
	want(t, "after the delay", serve(t, s, docindex.Request{PerQueue: 2}), "http://a.test/2")
}

func reopenSlots(t *testing.T, path string) {
	s := open(t, path, disk.Batch)
	putURLs(t, s, urls("http://a.test/1", "http://b.test/1")...)
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 10, nil, &b); err != nil || b.Len() != 2 {
		t.Fatal(b.Len(), err)
	}
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Kind: docindex.Robots, Pause: time.Minute})
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	putURLs(t, s, urls("http://a.test/2")...)
	s = again(t, s, path)
	if st := s.Stats(); st.Scheduled != 2 || st.Completed != 1 || st.Outcomes[docindex.Robots] != 1 {
		t.Errorf("%+v; want 2 scheduled and one completed", st)
	}
	want(t, "calls, a moment after the slots", serve(t, s, docindex.Request{}))
	time.Sleep(time.Second)
	want(t, "calls, a second later", serve(t, s, docindex.Request{}), "http://b.test/1")
	time.Sleep(58 * time.Second)
	want(t, "calls, before the pause ends", serve(t, s, docindex.Request{}))
	time.Sleep(time.Second)
	want(t, "calls, when it ends", serve(t, s, docindex.Request{}), "http://a.test/2")
}

// candidates takes all candidates that are available now, and returns their URLs, sorted.
func candidates(t *testing.T, s *disk.Store) (urls []string) {
	t.Helper()
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 100, nil, &b); err != nil {
		t.Fatal(err)
	}
	for i := range b.Len() {
		urls = append(urls, string(b.At(i).URL))
	}
	slices.Sort(urls)
	return urls
}

func reopenPauses(t *testing.T, path string) {
	s := open(t, path, disk.Batch)
	putURLs(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1")...)
	putURLs(t, s, docindex.Put{URL: []byte("http://a.test/3"), Key: []byte("k")})
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 1, nil, &b); err != nil || b.Len() != 1 {
		t.Fatal(b.Len(), err)
	}
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Status: 429, Pause: time.Hour, Gap: time.Hour})
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	wantPauses(t, s, map[string]time.Duration{})
	s = again(t, s, path)
	wantPauses(t, s, map[string]time.Duration{"a.test": time.Hour})
	want(t, "slots after a restart", candidates(t, s), "http://b.test/1")
	look, err := s.HostStatus(t.Context(), []byte("a.test"))
	if turn := look.AtSlots; err != nil || turn.Open || !turn.NotBefore.Equal(time.Now().Add(time.Hour)) ||
		turn.Wait == (docindex.Wait{}) {
		t.Errorf("the host's turn at the slots is %+v, %v; want it to be in an hour", turn, err)
	}
	time.Sleep(time.Hour - time.Millisecond)
	s = again(t, s, path)
	want(t, "slots before the pause ends", candidates(t, s), "http://b.test/1")
	time.Sleep(time.Millisecond)
	wantPauses(t, s, map[string]time.Duration{})
	want(t, "slots when it ends", candidates(t, s), "http://a.test/2", "http://a.test/3")
}

// reopenUsual: after a restart clients wait for what is left of the slots' own gap.
func reopenUsual(t *testing.T, path string) {
	const gap = 4 * time.Second
	s := open(t, path, disk.Batch)
	s.SetSlotGap(gap)
	putURLs(t, s, urls("http://a.test/1", "http://a.test/2")...)
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 1, nil, &b); err != nil || b.Len() != 1 {
		t.Fatal(b.Len(), err)
	}
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Status: 200, Pause: gap})
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	s = again(t, s, path)
	s.SetSlotGap(gap)
	wantPauses(t, s, map[string]time.Duration{"a.test": gap})
	want(t, "calls after a restart", serve(t, s, docindex.Request{}))
	time.Sleep(gap - time.Millisecond)
	want(t, "calls before the gap is over", serve(t, s, docindex.Request{}))
	time.Sleep(time.Millisecond)
	want(t, "calls when it is", serve(t, s, docindex.Request{}), "http://a.test/2")
}

// wantPauses checks which hosts are to be left alone since before the store was opened.
func wantPauses(t *testing.T, s *disk.Store, want map[string]time.Duration) {
	t.Helper()
	got := map[string]time.Duration{}
	if err := s.EachPause(t.Context(), func(host []byte, left time.Duration) {
		got[string(host)] = left
	}); err != nil || !maps.Equal(got, want) {
		t.Errorf("hosts to be left alone: %v, %v; want %v", got, err, want)
	}
}

// reopenAnswers reports the Retry-After of a host that a client asked.
func reopenAnswers(t *testing.T, path string) {
	s := open(t, path, disk.Batch)
	putURLs(t, s, urls("http://a.test/1", "http://b.test/1")...)
	for _, answer := range []docindex.HostAnswer{{Status: 503, RetryAfter: time.Hour}, {Status: 200}} {
		answer.Host = []byte("a.test") // two URLs of it were out
		if err := s.Answered(t.Context(), []docindex.HostAnswer{answer}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Hour - time.Millisecond)
	s = again(t, s, path)
	want(t, "slots before the host may be asked", candidates(t, s), "http://b.test/1")
	time.Sleep(time.Millisecond)
	want(t, "slots when it may be asked", candidates(t, s), "http://a.test/1")
}

// reopenAddresses has a client keep a URL over a restart. Nothing else of its address is given out
// before the URL is reported.
func reopenAddresses(t *testing.T, path string) {
	pace := docindex.Pace{Gap: 1000, Open: 1}
	of := func([]byte) docindex.HostAddress {
		return docindex.HostAddress{Addr: netip.MustParseAddr("192.0.2.1"), SitePace: pace, AddressPace: pace}
	}
	s := open(t, path, disk.Batch)
	s.SetAddresses(of)
	time.Sleep(time.Minute)
	putURLs(t, s, urls("http://a.test/1", "http://b.test/1")...)
	r := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour}
	get := func() (all []string) {
		if err := s.Serve(t.Context(), r, func(h *docindex.Served) error {
			for i := range h.Len() {
				all = append(all, string(h.At(i).URL))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := get(); len(got) != 1 {
		t.Fatalf("%q are given out; want one", got)
	}
	s = again(t, s, path)
	s.SetAddresses(of)
	for range 60 {
		if got := get(); len(got) > 0 {
			t.Fatalf("%q are given out while a client has another URL of the address", got)
		}
		time.Sleep(time.Minute - time.Second)
	}
	time.Sleep(2 * time.Minute)
	if got := get(); len(got) != 1 {
		t.Errorf("%q are given out when the lease has ended; want one", got)
	}
}

func reopenDocuments(t *testing.T, path string) {
	s := open(t, path, disk.Batch)
	put := docindex.Put{URL: []byte("http://a.test/1"), DocID: []byte("mine"), Priority: -7,
		Crawl: []byte("c"), Key: []byte("k"),
		Metadata: []byte(`{"a":["b"]}`), Due: time.Now().Unix() + 9}
	putURLs(t, s, put, docindex.Put{URL: []byte("http://a.test/2"), Crawl: []byte("c"), Key: []byte("k")})
	s = again(t, s, path)
	d, err := s.Document(t.Context(), []byte("mine"))
	if err != nil || string(d.URL) != string(put.URL) || d.Priority != -7 || string(d.Crawl) != "c" ||
		string(d.Key) != "k" ||
		string(d.Metadata) != `{"a":["b"]}` || d.Due != put.Due || d.Created.Unix() != time.Now().Unix() {
		t.Errorf("document is %+v, %v", d, err)
	}
	other, err := s.Find(t.Context(), docindex.Scope{Crawl: []byte("c"), Key: []byte("k")}, []byte("http://a.test/2"))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := s.Document(t.Context(), other.DocID); err != nil || string(d.URL) != "http://a.test/2" {
		t.Errorf("document %s is %+v, %v", other.DocID, d, err)
	}
	var p docindex.Puts
	for _, id := range [][]byte{[]byte("mine"), other.DocID} {
		if err := p.Add(docindex.Put{URL: []byte("http://b.test/"), DocID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if res, err := s.Put(t.Context(), &p); err != nil || len(res.Refused) != 2 {
		t.Errorf("DOC_IDs of others: %+v, %v; want both refused", res, err)
	}
}

func reopenDeleted(t *testing.T, path string) {
	s := open(t, path, disk.Batch)
	putURLs(t, s, docindex.Put{URL: []byte("http://a.test/1"), DocID: []byte("one")})
	putURLs(t, s, urls("http://a.test/2", "http://b.test/1", "http://c.test/1")...)
	leased := time.Now()
	serve(t, s, docindex.Request{})
	for _, host := range []string{"a.test", "b.test"} {
		if _, err := s.Delete(t.Context(), docindex.Scope{Key: []byte(host)}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Minute)
	if n, err := s.Purge(t.Context(), docindex.Scope{Key: []byte("c.test")}, time.Now()); err != nil || n != 1 {
		t.Errorf("Purge = %d, %v; want 1", n, err)
	}
	s = again(t, s, path)
	if n := indextest.Count(t, s, nil); n != (docindex.Counts{Queues: 1}) {
		t.Errorf("counts are %+v; want one empty queue", n)
	}
	// A deleted document's DOC_ID is free, and its URL is new.
	putURLs(t, s, docindex.Put{URL: []byte("http://b.test/1"), DocID: []byte("one")})
	putURLs(t, s, urls("http://a.test/1")...)
	want(t, "while the client has what was deleted", serve(t, s, docindex.Request{}))
	time.Sleep(time.Until(leased.Add(time.Hour)))
	want(t, "new", serve(t, s, docindex.Request{}), "http://a.test/1", "http://b.test/1")
}

// TestLargest puts the largest batch that is allowed.
func TestLargest(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.Batch)
	long := strings.Repeat("x", 7900)
	var puts []docindex.Put
	for i := range 1000 {
		puts = append(puts, docindex.Put{URL: fmt.Appendf(nil, "http://a.test/%d/%s", i, long),
			Metadata: fmt.Appendf(nil, `{"a":["%s"]}`, long)})
	}
	putURLs(t, s, puts...)
	s = again(t, s, path)
	if got := serve(t, s, docindex.Request{}); len(got) != len(puts) {
		t.Errorf("%d are served; want %d", len(got), len(puts))
	}
}

// TestDeleteCrawl deletes more queues than one txn deletes, with queues of another crawl between
// them.
func TestDeleteCrawl(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.None)
	for i := range 2500 {
		url := fmt.Appendf(nil, "http://h%d.test/", i)
		crawl := []byte("gone")
		if i%7 == 0 {
			crawl = []byte("stays")
		}
		putURLs(t, s, docindex.Put{URL: url, Crawl: crawl})
	}
	n, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("gone")})
	if err != nil || n != 2142 {
		t.Errorf("Delete = %d, %v; want 2142", n, err)
	}
	s = again(t, s, path)
	if got := indextest.Count(t, s, nil); got.Queues != 358 || got.Scheduled != 358 {
		t.Errorf("counts are %+v; want 358 URLs in as many queues", got)
	}
}

// madeToRefuse makes a store with one URL, which a case of TestOpenRefuses damages.
func madeToRefuse(t *testing.T) (path string, s *disk.Store) {
	path = filepath.Join(t.TempDir(), "db")
	s = open(t, path, disk.Batch)
	putURLs(t, s, urls("http://a.test/1")...)
	return path, s
}

// refused checks that a path is not opened, and that the error has some words.
func refused(t *testing.T, path string, words ...string) {
	t.Helper()
	s, err := disk.Open(disk.Config{Path: path, Memory: memoryOfTests()})
	if err == nil {
		s.Close()
		t.Fatal("it is opened")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error is %q; want %q in it", err, word)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Run("open already", func(t *testing.T) {
		path, _ := madeToRefuse(t)
		refused(t, path, path, "in use")
	})
	t.Run("another process", func(t *testing.T) {
		path, _ := madeToRefuse(t)
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), childVar+"="+path)
		if out, err := cmd.CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "is in use by another process") {
			t.Errorf("another process says %q, %v; want that it is in use", out, err)
		}
	})
	t.Run("another version", func(t *testing.T) {
		path, s := madeToRefuse(t)
		if err := s.PutRow("mversion", "\x63"); err != nil {
			t.Fatal(err)
		}
		s.Close()
		refused(t, path, path, "version 99", "run the program that wrote it")
	})
	t.Run("a row that is not as it was written", func(t *testing.T) {
		path, s := madeToRefuse(t)
		if err := s.PutRow("x\x00\x00\x00\x00", "?"); err != nil {
			t.Fatal(err)
		}
		s.Close()
		refused(t, path, path, "damaged", "put back a copy")
	})
	t.Run("a table that is cut", func(t *testing.T) {
		path, s := madeToRefuse(t)
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		s.Close()
		tables, _ := filepath.Glob(filepath.Join(path, "*.sst"))
		if len(tables) == 0 {
			t.Fatal("there is no table")
		}
		for _, table := range tables {
			if err := os.Truncate(table, 100); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, path, path, "move it away")
	})
	t.Run("files that are missing", func(t *testing.T) {
		path, s := madeToRefuse(t)
		s.Close()
		manifests, _ := filepath.Glob(filepath.Join(path, "MANIFEST*"))
		for _, file := range manifests {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, path, path, "move it away")
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, path, path)
	})
}

// TestSyncs opens a store with each sync setting, and opens it again.
func TestSyncs(t *testing.T) {
	for _, sync := range []disk.Sync{disk.Batch, disk.Interval, disk.None} {
		t.Run(fmt.Sprint(sync), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := t.TempDir()
				s := open(t, path, sync)
				putURLs(t, s, urls("http://a.test/1")...)
				time.Sleep(10 * time.Second)
				putURLs(t, s, urls("http://a.test/2")...)
				s = again(t, s, path)
				want(t, "stored", serve(t, s, docindex.Request{}), "http://a.test/1", "http://a.test/2")
				s.Close()
				var p docindex.Puts
				if err := p.Add(docindex.Put{URL: []byte("http://a.test/3")}); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Put(t.Context(), &p); err == nil || p.Verdict(0) != docindex.Unsettled {
					t.Errorf("a put after Close: %v, %v; want an error", p.Verdict(0), err)
				}
			})
		})
	}
}
