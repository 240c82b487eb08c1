package disk

import (
	"encoding/binary"
	"math/rand/v2"
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
	for i := range byte(len(nameLine{}) - 3) {
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
	if !k.has(&more) || known != len(names)-1 {
		t.Errorf("one more than a line has places: known %v, and %d others; want true, %d", k.has(&more), known,
			len(names)-1)
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
	*s.docs.known = *newKnownNames()
	put("http://a.test/1", docindex.Same)
	knows("http://a.test/1", true)
	knows("http://a.test/2", false)
}

// bytes returns the memory that the table takes beyond its 8 MiB.
func (k *knownNames) bytes() int64 { return int64(k.lines()-leastLines) * lineBytes }

// madeName returns the name of document i of a queue.
func madeName(queue uint32, i uint64) *name {
	n := name{queue: queue}
	binary.BigEndian.PutUint64(n.hash[:], i*0x9E3779B97F4A7C15)
	binary.BigEndian.PutUint16(n.hash[8:], uint16(i*0xA5A5+uint64(queue)))
	return &n
}

// TestKnownNamesGrow: with room for them, nine in ten names are remembered, in 16 bytes each. With less
// room some are forgotten, and their memory is released.
func TestKnownNamesGrow(t *testing.T) {
	const names = 2_000_000
	k := newKnownNames()
	count := func() (known int) {
		for i := range uint64(names) {
			if k.has(madeName(uint32(i%1000), i)) {
				known++
			}
		}
		return known
	}
	k.allow(1 << 30)
	for i := range uint64(names) {
		k.add(madeName(uint32(i%1000), i))
	}
	if known, bytes := count(), k.bytes(); known < names*85/100 || bytes > names*16 {
		t.Errorf("of %d names %d are known, and take %d bytes more", names, known, bytes)
	}
	for _, bytes := range []int64{12 << 20, 5 << 20, 0} {
		before := count()
		k.allow(bytes)
		places := k.lines() * len(nameLine{})
		if known := count(); k.bytes() > bytes || known > before || known < min(before, places)*6/10 {
			t.Errorf("with %d bytes: %d names known in %d bytes, of %d", bytes, known, k.bytes(), before)
		}
		if n := (k.lines() + chunkLines - 1) / chunkLines; len(k.chunks) > n+1 {
			t.Errorf("with %d bytes: %d chunks of memory; want at most %d", bytes, len(k.chunks), n+1)
		}
	}
}

// TestKnownNamesNeverWrong adds, removes and looks for names while the memory changes. A name is known
// only if it was added and not removed since.
func TestKnownNamesNeverWrong(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	k, added := newKnownNames(), map[uint64]bool{}
	hits := 0
	for range 3_000_000 {
		i := r.Uint64N(1_500_000)
		n := madeName(uint32(i%7), i)
		if k.has(n) {
			hits++
			if !added[i] {
				t.Fatalf("name %d is known", i)
			}
		}
		switch r.IntN(8) {
		case 0:
			k.remove(n)
			delete(added, i)
		case 1:
			if i < 300 { // some 75 times in all
				k.allow(int64(r.IntN(16 << 20)))
			}
		default:
			k.add(n)
			added[i] = true
		}
	}
	if hits < 500_000 {
		t.Errorf("%d names were known; want more", hits)
	}
}

// TestNamesGiveWay: names take what queues leave of the memory, and give it back when queues need it.
func TestNamesGiveWay(t *testing.T) {
	s, err := Open(Config{Path: t.TempDir(), Sync: None, Memory: 12 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	putFresh(t, s, 0, 1)
	s.base.Mu.Lock()
	for i := range uint64(2_000_000) {
		s.docs.known.add(madeName(1, i))
	}
	s.base.Mu.Unlock()
	e := &s.queues.cold.evictor
	all := s.docs.known.bytes()
	if all < e.budget*7/8 || all > e.budget {
		t.Errorf("names take %d bytes of the %d that are for queues and names", all, e.budget)
	}
	for i := 1; i < 10_001; i += 1000 {
		putFresh(t, s, i, i+1000)
	}
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if names := s.docs.known.bytes(); e.sched.InMemory() < 8000 || names > all/2 || e.used()+names > e.budget+1<<20 {
		t.Errorf("%d queues are in memory, with %d bytes; names take %d of %d bytes",
			e.sched.InMemory(), e.used(), names, e.budget)
	}
}

// TestNamesAfterReopen: in a store that was opened again names take what is free as soon as a queue is
// loaded, though puts of known URLs commit nothing.
func TestNamesAfterReopen(t *testing.T) {
	path := t.TempDir()
	s := openCold(t, path)
	putFresh(t, s, 0, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Path: path, Sync: None, Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	putFresh(t, s, 0, 1)
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	e := &s.queues.cold.evictor
	if most := int64(s.docs.known.most-leastLines) * lineBytes; most < e.budget*7/8 || most > e.budget {
		t.Errorf("names may take %d bytes of %d", most, e.budget)
	}
}
