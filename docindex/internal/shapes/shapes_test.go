package shapes

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"urlserver/docindex"
)

// URLs of one group have one shape, and those of different groups have different ones.
func TestOf(t *testing.T) {
	groups := [][]string{
		{"http://a.test/", "http://b.test:8080", "http://a.test/?"},
		{"http://a.test/about", "http://a.test/contact", "http://a.test/a-long-name"},
		{"http://a.test/about.html", "http://a.test/contact.html"},
		{"http://a.test/page-1.html", "http://a.test/page-23.html", "http://a.test/page7-8.html"},
		{"http://a.test/item1", "http://a.test/item-2-red"},
		{"http://a.test/2-things", "http://a.test/300-more-things"},
		{"http://a.test/17", "http://a.test/9"},
		{"http://a.test/wiki/Go", "http://a.test/wiki/URL"},
		{"http://a.test/user7/about", "http://a.test/user12/contact"},
		{"http://a.test/4f8a0c1d9e/about", "http://a.test/99b2e8c4f0/x"},
		{"http://a.test/a/b/c/x", "http://a.test/a/b/d/y"},
		{"http://a.test/a/b/c/d/x", "http://a.test/a/b/e/f/x"},
		{"http://a.test/list?a=1&b=2", "http://a.test/list?b=3&a=4", "http://a.test/list?a=1&b=2&a=3"},
		{"http://a.test/list?a=1"},
		{"http://a.test/list?a=1&c=2"},
		{"http://a.test/list?a=1&sid=4"},
		{"http://a.test/list?a=2026-11-25"},
	}
	seen := map[uint64]string{}
	for _, group := range groups {
		for i, url := range group {
			got, first := Of([]byte(url)), Of([]byte(group[0]))
			if got.hash != first.hash || got.path != first.path {
				t.Errorf("%s and %s have different shapes", url, group[0])
			}
			if other, known := seen[got.hash]; i == 0 && known {
				t.Errorf("%s and %s have one shape", url, other)
			}
		}
		seen[Of([]byte(group[0])).hash] = group[0]
	}
	for _, url := range []string{"", "x", "http:", "http://", "http://a.test", "/////", "a;b?c;d&&=&e"} {
		Of([]byte(url)) // any text has a shape
	}
}

func TestPatternsOfTraps(t *testing.T) {
	for url, want := range map[string]uint8{
		"http://a.test/a/b/c/":                                      0,
		"http://a.test/a/b/a/b/x":                                   0,
		"http://a.test/a/b/a/b/a/x":                                 1,
		"http://a.test/1/2/3/4/5/6/7/8/9/10/a/b/c/d/e/f/g/h/i/":     0,
		"http://a.test/1/2/3/4/5/6/7/8/9/10/a/b/c/d/e/f/g/h/i/j/k/": 1,
		"http://a.test/x;jsessionid=1A2B":                           1,
		"http://a.test/x?a=1&PHPSESSID=1":                           1,
		"http://a.test/x?side=1":                                    0,
		"http://a.test/events/2026-11-25":                           1,
		"http://a.test/events/2026/11/":                             1,
		"http://a.test/events/2026/11/25":                           1,
		"http://a.test/events?month=2026-11":                        1,
		"http://a.test/2026/11/25/a-story":                          0,
		"http://a.test/items/12/25":                                 0,
		"http://a.test/a/a/a/2026-11-25;sid=1":                      3,
		"http://a.test/a/a/a?sid=1&day=2026-11-25":                  3,
	} {
		if got := Of([]byte(url)).traps; got != want {
			t.Errorf("%s has %d patterns of traps; want %d", url, got, want)
		}
	}
}

// A branch takes 64 bytes at most, with what a store on disk has of it, 20 bytes, its turn and
// its number in the order of hashes.
func TestSizeOfABranch(t *testing.T) {
	if n := unsafe.Sizeof(branch[[20]byte]{}) + unsafe.Sizeof(int64(0)) + unsafe.Sizeof(uint16(0)); n > 64 {
		t.Errorf("a branch has %d bytes; want 64 at most", n)
	}
}

// open says that many documents of each queue are scheduled.
func open(uint32) (scheduled, inTransit uint64) { return 100, 0 }

func enter(s *Tables[int], url, page string) uint32 {
	no, _ := s.Enter(1, &docindex.Put{URL: []byte(url), Page: []byte(page)}, []byte("a.test"), open)
	return no
}

// A site has a thousand branches. The other shapes share one more.
func TestManyShapes(t *testing.T) {
	var s Tables[int]
	for i := range 5000 {
		no := enter(&s, fmt.Sprintf("http://a.test/%c%c%c/", 'a'+i%26, 'a'+i/26%26, 'a'+i/676), "http://a.test/")
		if want := uint32(min(i+1, maxBranches+1)); no != want {
			t.Fatalf("shape %d has branch %d; want %d", i, no, want)
		}
	}
	if n, most := s.Bytes(), int64(64*(maxBranches+1)+256); n > most {
		t.Errorf("they take %d bytes; want %d at most", n, most)
	}
	if s.Drop(1); s.Bytes() != 0 {
		t.Errorf("%d bytes are left", s.Bytes())
	}
}

// What says more than a link on a page waits in no branch, and nor do the first few documents.
func TestEnter(t *testing.T) {
	var s Tables[int]
	url, page := []byte("http://a.test/x"), []byte("http://a.test/")
	for _, p := range []docindex.Put{
		{URL: url}, {URL: url, Page: page, Due: 1}, {URL: url, Page: page, Due: docindex.Now},
		{URL: url, Page: page, Priority: 1}, {URL: url, Page: page, Key: []byte("k")},
	} {
		if no, _ := s.Enter(1, &p, []byte("a.test"), open); no != 0 {
			t.Errorf("%+v waits in branch %d", p, no)
		}
	}
	few := func(uint32) (scheduled, inTransit uint64) { return enough - 1, 5 }
	if no, _ := s.Enter(1, &docindex.Put{URL: url, Page: page}, []byte("a.test"), few); no != 0 {
		t.Errorf("one of few waits in branch %d", no)
	}
}

// serve takes so many turns of branches that always have something.
func serve(table *Table[int], n int) (branches []uint32) {
	for range n {
		turn := table.Next(Turn{})
		table.Took(turn.Branch)
		branches = append(branches, turn.Branch)
	}
	return branches
}

func TestTurns(t *testing.T) {
	var s Tables[int]
	const page = "http://a.test/"
	shapes := []string{"/a/", "/b/", "/c/x?k=1", "/c/x?l=1", "/c/x?m=1"}
	for i, path := range shapes {
		if no := enter(&s, "http://a.test"+path, page); no != uint32(i+1) {
			t.Fatalf("%s has branch %d", path, no)
		}
		s.Of(1).Mark(uint32(i+1), true)
	}
	table := s.Of(1)
	count := func(branches []uint32) (n [6]int) {
		for _, no := range branches {
			n[no]++
		}
		return n
	}
	serve(table, 5)
	if n := count(serve(table, 90)); n[1] != 30 || n[2] != 30 || n[3]+n[4]+n[5] != 30 {
		t.Errorf("turns by branch: %v; want a third for each path", n[1:])
	}
}

// A page that brings nothing but its own shape raises the cost of the shape, once however many links it
// has; one that brings another makes it the cheapest. So the shapes have the turns by their costs.
func TestLearn(t *testing.T) {
	var s Tables[int]
	link := func(url, page string) { enter(&s, "http://a.test"+url, "http://a.test"+page) }
	link("/trap/1", "/")
	link("/page/1", "/")
	table := s.Of(1)
	costs := func(want ...uint8) {
		t.Helper()
		var got []uint8
		for i := range table.branches {
			got = append(got, table.branches[i].cost)
		}
		if !slices.Equal(got, want) {
			t.Errorf("branches cost %v; want %v", got, want)
		}
	}
	costs(usualCost, usualCost)
	link("/trap/2", "/trap/1")
	link("/trap/3", "/trap/1")
	costs(usualCost+costStep, usualCost)
	link("/page/2", "/page/1")
	costs(usualCost+costStep, usualCost+costStep)
	link("/trap/4", "/page/1")
	link("/page/3", "/page/1")
	costs(usualCost+costStep, 0)
	for i := range 10 {
		link("/trap/5", fmt.Sprintf("/trap/%d", i))
	}
	costs(mostCost, 0)
	if no, _ := s.Enter(1, &docindex.Put{URL: []byte("http://a.test/page/9"), Page: []byte("http://b.test/trap/1")},
		[]byte("a.test"), open); no != 2 {
		t.Errorf("a link on another site has branch %d", no)
	}
	costs(mostCost, 0)
	link("/page/x2/", "/page/x2") // by a redirect
	costs(mostCost, 0, usualCost)
	table.Mark(1, true)
	table.Mark(2, true)
	serve(table, 2)
	n := 0
	for _, no := range serve(table, 2*257) {
		n += int(no & 1)
	}
	if n != 2 {
		t.Errorf("the trap has %d turns of 514; want 2", n)
	}
	table.Mark(2, false)
	if got := serve(table, 3); !slices.Equal(got, []uint32{1, 1, 1}) {
		t.Errorf("alone it has the turns %v", got)
	}
}
