package disk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

// linksOf puts links of a few shapes, as they stand on a page.
func linksOf(t *testing.T, s docindex.Store, from, to int) {
	var p docindex.Puts
	for i := from; i < to; i++ {
		for _, shape := range []string{"trap/", "a/", "b/x?k="} {
			url := fmt.Appendf(nil, "http://site.test/%s%d", shape, i)
			if err := p.Add(docindex.Put{URL: url, Page: []byte("http://site.test/")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

// fetch hands out up to n documents, one at a time, and ends those for which end is true.
func fetch(t *testing.T, s docindex.Store, n int, end func(i int) bool) (urls []string) {
	for i := range n {
		var b docindex.Batch
		var o docindex.Outcomes
		if err := s.Candidates(t.Context(), 1, nil, &b); err != nil {
			t.Fatal(err)
		}
		if b.Len() == 0 {
			break
		}
		c := b.At(0)
		urls = append(urls, strings.TrimPrefix(string(c.URL), "http://site.test/"))
		if o.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL, Status: 200}); end(i) {
			if err := s.Outcomes(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
		}
	}
	return urls
}

// The order of the branches outlives a restart. What the slots had is due again, at its place.
func TestBranchesReopened(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.None)
	linksOf(t, s, 0, 40)
	always := func(int) bool { return true }
	first := fetch(t, s, 20, func(i int) bool { return i%5 != 4 })
	s = again(t, s, path)
	s.SetAhead(docindex.Ahead{Queue: 6})
	var some docindex.Batch
	var back docindex.Outcomes
	if err := s.Candidates(t.Context(), 100, nil, &some); err != nil || some.Len() != 6 {
		t.Errorf("%d documents at the slots, %v; want 6", some.Len(), err)
	}
	for i := range some.Len() {
		back.Add(docindex.Outcome{DocID: some.At(i).DocID, URL: some.At(i).URL})
	}
	if err := s.Return(t.Context(), &back); err != nil {
		t.Fatal(err)
	}
	linksOf(t, s, 40, 50)
	rest := fetch(t, s, 1000, always)
	want := map[string]bool{}
	for i := range 50 {
		for _, shape := range []string{"trap/", "a/", "b/x?k="} {
			want[fmt.Sprint(shape, i)] = true
		}
	}
	for i, url := range first {
		if i%5 != 4 {
			delete(want, url)
		}
	}
	if len(rest) != len(want) {
		t.Errorf("%d documents after the restart; want %d", len(rest), len(want))
	}
	last := map[string]int{}
	for i, url := range rest {
		if !want[url] {
			t.Errorf("%s comes after its end, or twice", url)
		}
		delete(want, url)
		at := strings.LastIndexAny(url, "/=") + 1
		var n int
		fmt.Sscan(url[at:], &n)
		if before, known := last[url[:at]]; known && n < before {
			t.Errorf("%s comes after number %d", url, before)
		}
		if last[url[:at]] = n; i < 60 && last["a/"]-last["trap/"] > 8 {
			t.Errorf("document %d is %s, and of another shape number %d was the last one", i, url, last["trap/"])
		}
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestShapes(t *testing.T) {
	indextest.RunShapes(t, func(t *testing.T) docindex.Store { return open(t, t.TempDir(), disk.None) })
}

// TestBranchesEvicted puts links of several shapes on many hosts, and fetches some of them between, with
// and without memory for queues. Without memory few queues are in memory, and the links of each host
// come in the same order, also after a restart.
func TestBranchesEvicted(t *testing.T) {
	const hosts = 50
	run := func(memory int64) (order map[string][]string) {
		path := t.TempDir()
		reopen := func() *disk.Store {
			s, err := disk.Open(disk.Config{Path: path, Sync: disk.None, Memory: memory})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := reopen()
		order = map[string][]string{}
		for round := range 4 {
			var p docindex.Puts
			for i := range 4 * hosts {
				host, n := i%hosts, i/hosts+4*round
				for _, shape := range []string{"trap/", "a/", "b/x?k="} {
					put := docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/%s%d", host, shape, n),
						Page: fmt.Appendf(nil, "http://h%d.test/trap/%d", host, n)}
					if err := p.Add(put); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := s.Put(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
			if n := s.QueuesInMemory(); memory == 1 && n > hosts/2 {
				t.Errorf("%d of %d queues are in memory", n, hosts)
			}
			for _, url := range fetch(t, s, 5*hosts, func(int) bool { return true }) {
				host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
				order[host] = append(order[host], url)
			}
			if round%2 == 1 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = reopen()
			}
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return order
	}
	want, got := run(0), run(1)
	for host, urls := range want {
		if some := got[host]; len(urls) < 18 || !slices.Equal(some[:min(len(some), 18)], urls[:18]) {
			t.Fatalf("without memory for queues the order of %s is %q; want %q", host, some, urls)
		}
	}
}
