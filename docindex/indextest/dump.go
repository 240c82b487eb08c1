package indextest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
)

// dumpCases test what the export of a store's state needs.
var dumpCases = []testCase{
	{"dump: creation dates are given", createdGiven},
	{"dump: completed at once", completedAtOnce},
	{"dump: purge by given dates", createdPurge},
	{"dump: listed while others forget", listWhileForgotten},
	{"dump: settings", settings},
	{"dump: many queues", manyQueues},
}

func createdGiven(t *testing.T, s docindex.Store) {
	now := time.Now().Unix()
	at := func(path string, created int64) docindex.Put {
		return docindex.Put{URL: []byte("http://a.test/" + path), DocID: []byte(path), Created: created}
	}
	add(t, s, at("old", now-1000), at("now", 0), at("later", now+1000), at("least", 1))
	news := at("old", now-5)
	news.DocID, news.Update = nil, true
	add(t, s, news) // the URL is known: its time of creation stays
	for id, want := range map[string]int64{"old": now - 1000, "now": now, "later": now + 1000, "least": 1} {
		d, err := s.Document(t.Context(), []byte(id))
		if err != nil || d.Created.Unix() != want {
			t.Errorf("%s was created %d, %v; want %d", id, d.Created.Unix(), err, want)
		}
	}
}

func completedAtOnce(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.test/known")...)
	for _, path := range []string{"known", "new"} {
		add(t, s, docindex.Put{URL: []byte("http://a.test/" + path), Due: docindex.Never})
	}
	wantStates(t, s, 1, 0, 1)
	wantTexts(t, take(t, s, 10), "http://a.test/known")
}

func createdPurge(t *testing.T, s docindex.Store) {
	now := time.Now().Unix()
	var puts []docindex.Put
	const n = 2500 // more than one portion
	for i := range n {
		puts = append(puts, docindex.Put{URL: fmt.Appendf(nil, "http://a.test/%d", i), Created: now - int64(i*7%10)})
	}
	add(t, s, puts...)
	call(t, s, docindex.Request{AnyCrawl: true, PerQueue: 50, Lease: time.Hour})
	if got, err := s.Purge(t.Context(), docindex.Scope{}, time.Unix(now-4, 0)); err != nil || got != n/2 {
		t.Errorf("Purge = %d, %v; want %d", got, err, n/2)
	}
	left := 0
	err := s.List(t.Context(), docindex.Scope{}, func(d *docindex.Document) bool {
		left++
		return d.Created.Unix() >= now-4
	})
	if c := Count(t, s, nil); err != nil || left != n/2 || c.Scheduled+c.InTransit != n/2 {
		t.Errorf("%d young URLs are listed in a row, counts %+v, %v; want %d", left, c, err, n/2)
	}
	add(t, s, urls("http://a.test/last")...)
	if got, err := s.Purge(t.Context(), docindex.Scope{}, time.Unix(now+1, 0)); err != nil || got != n/2+1 {
		t.Errorf("Purge of the rest = %d, %v; want %d", got, err, n/2+1)
	}
}

// listWhileForgotten purges half of the URLs during a List, at any position. List must return all
// remaining URLs, or an error.
func listWhileForgotten(t *testing.T, s docindex.Store) {
	now := time.Now().Unix()
	whole := 0
	for _, at := range []int{1, 999, 1000, 1001, 2000, 2400} {
		crawl := fmt.Appendf(nil, "c%d", at)
		var puts []docindex.Put
		for i := range 2500 {
			puts = append(puts, docindex.Put{URL: fmt.Appendf(nil, "http://a.test/%d", i), Crawl: crawl,
				Created: now - int64(100*((i+1)%2))})
		}
		add(t, s, puts...)
		visited, stay := 0, 0
		err := s.List(t.Context(), docindex.Scope{Crawl: crawl}, func(d *docindex.Document) bool {
			if visited++; visited == at {
				if n, err := s.Purge(t.Context(), docindex.Scope{Crawl: crawl},
					time.Unix(now-1, 0)); n != 1250 || err != nil {
					t.Errorf("Purge = %d, %v; want 1250", n, err)
				}
			}
			if d.Created.Unix() == now {
				stay++
			}
			return true
		})
		if err == nil && stay != 1250 {
			t.Errorf("purged after %d: %d of 1250 that stay were seen, without an error", at, stay)
		}
		if err == nil {
			whole++
		}
	}
	if whole == 0 {
		t.Error("none of the lists was whole")
	}
}

// settingsOf lists the settings as text.
func settingsOf(t *testing.T, s docindex.Store) (all []string) {
	t.Helper()
	err := s.Settings(t.Context(), func(one *docindex.Setting) bool {
		all = append(all, fmt.Sprintf("%d %s/%s%s %d", one.Kind, one.Crawl, one.Key,
			map[bool]string{true: "!"}[one.Host], one.Value))
		return true
	})
	if err != nil {
		t.Fatalf("Settings: %v", err)
	}
	return all
}

func settings(t *testing.T, s docindex.Store) {
	wantURLs(t, settingsOf(t, s))
	until := uint64(time.Now().Unix() + 60)
	add(t, s, urls("http://a.test/", "http://b.test/")...)
	for _, one := range []docindex.Setting{
		{Kind: docindex.SetDelay, Scope: docindex.Scope{Key: []byte("a.test")}, Value: 0},
		{Kind: docindex.SetBlock, Scope: docindex.Scope{Key: []byte("a.test")}, Value: until},
		{Kind: docindex.SetLimit, Scope: docindex.Scope{Key: []byte("a.test")}, Value: 1<<32 - 1},
		{Kind: docindex.SetDelay, Scope: docindex.Scope{Crawl: []byte("c"), Key: []byte("none")}, Value: 1<<32 - 1},
		{Kind: docindex.SetBlock, Scope: docindex.Scope{Key: []byte("b.test")}, Value: until - 10},
		{Kind: docindex.SetLimit, Scope: docindex.Scope{Key: []byte("b.test")}, Value: 5},
		{Kind: docindex.SetLimit, Scope: docindex.Scope{Key: []byte("b.test")}, Value: 0},
		{Kind: docindex.SetDelay, Value: 7},
		{Kind: docindex.SetDelay, Scope: docindex.Scope{Key: []byte("a.test.")}, Host: true, Value: 9},
		{Kind: docindex.SetBlock, Scope: docindex.Scope{Key: []byte("a.test")}, Host: true, Value: until},
		{Kind: docindex.SetBlock, Scope: docindex.Scope{Key: []byte("b.test")}, Host: true, Value: until - 10},
		{Kind: docindex.SetBlock, Scope: docindex.Scope{Key: []byte("c.test")}, Host: true, Value: until},
		{Kind: docindex.SetBlock, Scope: docindex.Scope{Key: []byte("c.test")}, Host: true, Value: 0},
		{Kind: docindex.SetDelay, Scope: docindex.Scope{Key: []byte("b.test")}, Host: true, Value: 3},
		{Kind: docindex.SetDelay, Scope: docindex.Scope{Key: []byte("b.test")}, Host: true, Value: 0},
		{Kind: docindex.SetActive, Value: 0},
	} {
		if err := s.Set(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(51 * time.Second) // the block of b.test has ended
	got := settingsOf(t, s)
	if len(got) > 4 {
		slices.Sort(got[:2]) // settings of all queues come first, then settings of hosts
		slices.Sort(got[2:4])
		slices.Sort(got[4:])
	}
	want := []string{"0 / 7", "3 / 0", "0 /a.test! 9", fmt.Sprintf("1 /a.test! %d", until), "0 /a.test 0",
		fmt.Sprintf("1 /a.test %d", until), "2 /a.test 4294967295", "0 c/none 4294967295"}
	slices.Sort(want[4:])
	if !slices.Equal(got, want) {
		t.Errorf("settings are\n%q; want\n%q", got, want)
	}
	seen := 0
	if err := s.Settings(t.Context(),
		func(*docindex.Setting) bool { seen++; return seen < 3 }); err != nil || seen != 3 {
		t.Errorf("%d settings were visited, %v; want an end after 3", seen, err)
	}
}

func manyQueues(t *testing.T, s docindex.Store) {
	const n = 25_000 // more than one portion
	var puts []docindex.Put
	for i := range n {
		puts = append(puts, docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/", i)})
	}
	puts = append(puts, docindex.Put{URL: []byte("http://h0.test/"), Crawl: []byte("c")})
	add(t, s, puts...)
	for crawl, want := range map[string]int{"": n, "c": 1, "none": 0} {
		listed := 0
		err := s.List(t.Context(), docindex.Scope{Crawl: []byte(crawl)},
			func(*docindex.Document) bool { listed++; return true })
		if err != nil || listed != want {
			t.Errorf("%d URLs of crawl %q are listed, %v; want %d", listed, crawl, err, want)
		}
	}
	for i := 0; i < n; i += 5 {
		set(t, s, docindex.SetDelay, fmt.Sprintf("h%d.test", i), uint64(i))
	}
	if got := settingsOf(t, s); len(got) != n/5 {
		t.Errorf("%d settings; want %d", len(got), n/5)
	}
}
