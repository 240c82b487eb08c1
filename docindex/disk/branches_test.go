package disk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/memory"
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

// Links of one shape come first in, first out, and so do those that say a priority or a due time,
// or no page: as if there were no shapes.
func TestOneShape(t *testing.T) {
	for name, s := range map[string]docindex.Store{"memory": memory.New(), "disk": open(t, t.TempDir(), disk.None)} {
		t.Run(name, func(t *testing.T) {
			var p docindex.Puts
			var want []string
			past := time.Now().Unix() - 100
			for i := range 300 {
				put := docindex.Put{URL: fmt.Appendf(nil, "http://site.test/page-%d.html", i)}
				if want = append(want, fmt.Sprintf("page-%d.html", i)); i%10 > 0 {
					put.Page = []byte("http://site.test/page-0.html")
				}
				if err := p.Add(put); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 30 {
				shape := string('a' + rune(i%3))
				for _, put := range []docindex.Put{{Priority: 1}, {Due: past}} {
					put.URL = fmt.Appendf(nil, "http://site.test/%s/%d?p=%d", shape, i, put.Priority)
					put.Page = []byte("http://site.test/page-0.html")
					if err := p.Add(put); err != nil {
						t.Fatal(err)
					}
					url := fmt.Sprintf("%s/%d?p=%d", shape, i, put.Priority)
					if put.Priority > 0 {
						want = slices.Insert(want, i, url)
					} else {
						want = append(want, url)
					}
				}
			}
			if _, err := s.Put(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
			if got := fetch(t, s, 1000, func(int) bool { return true }); !slices.Equal(got, want) {
				t.Errorf("the order is %q; want %q", got, want)
			}
		})
	}
}

// The slots have few documents of a queue whose links take turns. They are woken when they have room
// again.
func TestAhead(t *testing.T) {
	for name, s := range map[string]docindex.Store{"memory": memory.New(), "disk": open(t, t.TempDir(), disk.None)} {
		t.Run(name, func(t *testing.T) {
			woken := 0
			s.OnWake(func() { woken++ })
			s.SetAhead(docindex.Ahead{Queue: 6})
			linksOf(t, s, 0, 10)
			var b docindex.Batch
			if err := s.Candidates(t.Context(), 100, nil, &b); err != nil || b.Len() != 6 {
				t.Fatalf("%d documents, %v; want 6", b.Len(), err)
			}
			status, err := s.HostStatus(t.Context(), []byte("site.test"))
			want := docindex.Wait{Rule: docindex.WaitShapes, Count: 6}
			if err != nil || status.AtSlots.Wait != want {
				t.Errorf("it waits: %+v, %v; want %+v", status.AtSlots.Wait, err, want)
			}
			for i, want := range []int{1, 1, 2, 2, 2, 2} { // the put woke them, too
				var o docindex.Outcomes
				o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200})
				if err := s.Outcomes(t.Context(), &o); err != nil || woken != want {
					t.Errorf("after %d outcomes the slots were woken %d times; want %d; %v", i+1, woken, want, err)
				}
			}
			var more docindex.Batch
			if err := s.Candidates(t.Context(), 100, nil, &more); err != nil || more.Len() != 6 {
				t.Errorf("%d documents more, %v; want 6", more.Len(), err)
			}
		})
	}
}
