package disk

import (
	"testing"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

// TestKnownNames: a name is known only while the line that it shares with others has its mark, which is
// until another one takes its place.
func TestKnownNames(t *testing.T) {
	a := name{queue: 7, hash: [hashLen]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
	tagged, longer := a, a
	tagged.hash[urlLen] = 1
	longer.hash[hashLen-1] = 1
	names := []name{a, tagged, longer}
	for i := range byte(knownLine - 3) {
		b := a
		b.hash[urlLen-1] += 1 + i
		names = append(names, b)
	}
	k := newKnownNames()
	first, _ := k.lineOf(&a)
	for i := range names {
		n := &names[i]
		if line, _ := k.lineOf(n); line != first {
			t.Fatalf("%v and %v are to share a line", a, *n)
		}
		if k.has(n) {
			t.Errorf("%v is known before it is added", *n)
		}
		k.remove(n) // removes no other
		k.add(n)
		k.add(n) // takes no second place
	}
	for i := range names {
		if !k.has(&names[i]) {
			t.Errorf("%v is not known; the line had a place for it", names[i])
		}
	}
	k.remove(&tagged)
	if k.has(&tagged) || !k.has(&longer) {
		t.Errorf("after its removal known %v, another one %v; want false, true", k.has(&tagged), k.has(&longer))
	}
	k.add(&tagged)
	more := a
	more.hash[urlLen-1]--
	k.add(&more)
	known := 0
	for i := range names {
		if k.has(&names[i]) {
			known++
		}
	}
	if !k.has(&more) || known != knownLine-1 {
		t.Errorf("one more than a line has places: known %v, and %d others; want true, %d", k.has(&more), known,
			knownLine-1)
	}
}

// TestNamesOfOneQueueDiffer: short names of a queue that share a line have other marks, whichever bit
// differs, and a URL has another line or mark in each queue. No name has the mark of a free place.
func TestNamesOfOneQueueDiffer(t *testing.T) {
	k := newKnownNames()
	for queue := uint32(1); queue < 1000; queue++ {
		a := name{queue: queue, hash: [hashLen]byte{0xA5, 0x5A, 3, 4, 5, 6, 7, 8, 9, 10}}
		k.add(&a)
		for bit := range urlLen * 8 {
			b := a
			if b.hash[bit/8] ^= 1 << (bit % 8); k.has(&b) {
				t.Fatalf("%v is taken for %v", b, a)
			}
		}
		b := a
		if b.queue++; k.has(&b) {
			t.Fatalf("%v is taken for %v", b, a)
		}
		k.remove(&a)
	}
	if k.has(&name{}) {
		t.Error("a free place is taken for a name")
	}
	if k.add(&name{}); k.has(&name{}) {
		t.Error("a name with the mark of a free place is held")
	}
}

// TestNewURLIsKnown: the index remembers a URL that it has stored, so that the next put of it reads no
// row. It knows another one of that queue only after it has read its row.
func TestNewURLIsKnown(t *testing.T) {
	s, err := Open(Config{Path: t.TempDir(), Sync: None, Log: zerolog.New(zerolog.NewTestWriter(t))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func(url string, want docindex.Verdict) {
		t.Helper()
		var p docindex.Puts
		if err := p.Add(docindex.Put{URL: []byte(url)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), &p); err != nil || p.Verdict(0) != want {
			t.Fatalf("Put of %s: %v, %v; want %v", url, p.Verdict(0), err, want)
		}
	}
	knows := func(url string, want bool) {
		t.Helper()
		if n := s.docs.namer.name(1, []byte(url)); s.docs.known.has(&n) != want {
			t.Errorf("%s is remembered: %v; want %v", url, !want, want)
		}
	}
	put("http://a.test/1", docindex.New)
	knows("http://a.test/1", true)
	knows("http://a.test/2", false)
	put("http://a.test/2", docindex.New)
	put("http://a.test/1", docindex.Same)
	clear(s.docs.known)
	put("http://a.test/1", docindex.Same)
	knows("http://a.test/1", true)
	knows("http://a.test/2", false)
}
