package disk_test

import (
	"fmt"
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
