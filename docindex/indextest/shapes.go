package indextest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
)

// RunShapes runs the suite of stores in which links take turns by their shapes.
func RunShapes(t *testing.T, open func(t *testing.T) docindex.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, docindex.Store)
	}{
		{"shapes take turns", shapesInTurn},
		{"one shape", oneShape},
		{"slots take few ahead", fewAhead},
		{"clients are served in turn", shapesAtCalls},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

const linkPage = "http://site.test/"

// putLinks puts links of a few shapes, as they stand on a page.
func putLinks(t *testing.T, s docindex.Store, from, to int) {
	var puts []docindex.Put
	for i := from; i < to; i++ {
		for _, shape := range []string{"trap/", "a/", "b/x?k="} {
			url := fmt.Appendf(nil, "%s%s%d", linkPage, shape, i)
			puts = append(puts, docindex.Put{URL: url, Page: []byte(linkPage)})
		}
	}
	put(t, s, puts...)
}

// fetch hands out up to n documents, one at a time, and ends them.
func fetch(t *testing.T, s docindex.Store, n int) (urls []string) {
	for range n {
		b := take(t, s, 1)
		if b.Len() == 0 {
			break
		}
		urls = append(urls, strings.TrimPrefix(string(b.At(0).URL), linkPage))
		end(t, s, b)
	}
	return urls
}

// inTurn fails if of some URLs those of one shape come twice before the others come once.
func inTurn(t *testing.T, urls []string) {
	t.Helper()
	n := map[string]int{}
	for i, url := range urls {
		if n[url[:1]]++; n[url[:1]] > i/3+2 {
			t.Fatalf("the order is %q; want three shapes in turn", urls)
		}
	}
}

func shapesInTurn(t *testing.T, s docindex.Store) {
	putLinks(t, s, 0, 2) // the first documents of a queue are in no branch
	if n := len(fetch(t, s, 6)); n != 6 {
		t.Fatalf("%d documents; want 6", n)
	}
	var puts []docindex.Put
	for i := range 40 {
		puts = append(puts, docindex.Put{URL: fmt.Appendf(nil, "%strap/%d", linkPage, 100+i), Page: []byte(linkPage)})
	}
	put(t, s, puts...)
	putLinks(t, s, 10, 20)
	first := fetch(t, s, 4) // which waited for no turn
	if !slices.Equal(first, []string{"trap/100", "trap/101", "trap/102", "trap/103"}) {
		t.Errorf("at first come %q", first)
	}
	inTurn(t, fetch(t, s, 27))
	back := take(t, s, 1)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: back.At(0).DocID, URL: back.At(0).URL})
	if err := s.Return(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	if n := len(fetch(t, s, 100)); n != 70-31 {
		t.Errorf("%d documents are left; want %d", n, 70-31)
	}
}

// oneShape: links of one shape come first in, first out, and so do those that say a priority or a due
// time, or no page: as if there were no shapes.
func oneShape(t *testing.T, s docindex.Store) {
	var puts []docindex.Put
	var want []string
	past := time.Now().Unix() - 100
	for i := range 100 {
		put := docindex.Put{URL: fmt.Appendf(nil, "%spage-%d.html", linkPage, i)}
		if want = append(want, fmt.Sprintf("page-%d.html", i)); i%10 > 0 {
			put.Page = []byte(linkPage + "page-0.html")
		}
		puts = append(puts, put)
	}
	for i := range 30 {
		shape := string('a' + rune(i%3))
		for _, put := range []docindex.Put{{Priority: 1}, {Due: past}} {
			put.URL = fmt.Appendf(nil, "%s%s/%d?p=%d", linkPage, shape, i, put.Priority)
			put.Page = []byte(linkPage + "page-0.html")
			url := strings.TrimPrefix(string(put.URL), linkPage)
			if puts = append(puts, put); put.Priority > 0 {
				want = slices.Insert(want, i, url)
			} else {
				want = append(want, url)
			}
		}
	}
	put(t, s, puts...)
	if got := fetch(t, s, 1000); !slices.Equal(got, want) {
		t.Errorf("the order is %q; want %q", got, want)
	}
}

// fewAhead: the slots have few documents of a queue whose links take turns. They are woken when they
// have room again.
func fewAhead(t *testing.T, s docindex.Store) {
	woken := 0
	s.OnWake(func() { woken++ })
	s.SetAhead(docindex.Ahead{Queue: 6})
	putLinks(t, s, 0, 10)
	b := take(t, s, 100)
	if b.Len() != 6 {
		t.Fatalf("%d documents; want 6", b.Len())
	}
	status, err := s.HostStatus(t.Context(), []byte("site.test"))
	want := docindex.Wait{Rule: docindex.WaitShapes, Count: 6}
	if err != nil || status.AtSlots.Wait != want {
		t.Errorf("it waits: %+v, %v; want %+v", status.AtSlots.Wait, err, want)
	}
	for i, want := range []int{1, 1, 2, 2, 2, 2} { // the put woke them, too
		var o docindex.Outcomes
		o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200})
		if report(t, s, &o); woken != want {
			t.Errorf("after %d outcomes the slots were woken %d times; want %d", i+1, woken, want)
		}
	}
	if n := take(t, s, 100).Len(); n != 6 {
		t.Errorf("%d documents more; want 6", n)
	}
}

// shapesAtCalls: clients are given links in the same order.
func shapesAtCalls(t *testing.T, s docindex.Store) {
	putLinks(t, s, 0, 20)
	r := any
	r.PerQueue = 45
	var got []string
	if err := s.Serve(t.Context(), r, func(h *docindex.Served) error {
		for i := range h.Len() {
			got = append(got, strings.TrimPrefix(string(h.At(i).URL), linkPage))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 45 {
		t.Fatalf("%d documents; want 45", len(got))
	}
	inTurn(t, got[6:])
}
