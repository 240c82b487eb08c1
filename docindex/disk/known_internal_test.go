package disk

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

// has reports whether the table has a name.
func (k *knownNames) has(n *name) bool {
	has, _ := k.look(n)
	return has
}

// TestKnownNames: a name is known only while one of its two buckets has its mark, which is until another
// name takes its place.
func TestKnownNames(t *testing.T) {
	k := newKnownNames()
	bucketsOf := func(n *name) [2]*nameBucket {
		first, second := k.both(knownOf(n))
		return [2]*nameBucket{first, second}
	}
	a := name{queue: 7, hash: [hashLen]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
	var names []name
	for i := range byte(2*bucketMarks + 1) {
		b := a
		b.hash[urlLen-1] += i
		if names = append(names, b); bucketsOf(&b) != bucketsOf(&a) || k.has(&b) {
			t.Fatalf("%v is to have the buckets of %v, and not to be known yet", b, a)
		}
	}
	for i := range names[1:] {
		k.remove(&names[i]) // removes no other
		k.add(&names[i])
		k.add(&names[i]) // takes no second place
	}
	for i := range names[1:] {
		if !k.has(&names[i]) {
			t.Errorf("%v is not known; its buckets had a place for it", names[i])
		}
	}
	k.remove(&names[3])
	if k.has(&names[3]) || !k.has(&names[4]) {
		t.Errorf("after its removal known %v, another one %v; want false, true", k.has(&names[3]), k.has(&names[4]))
	}
	k.add(&names[3])
	more := &names[2*bucketMarks]
	k.add(more)
	known := 0
	for i := range names {
		has, seen := k.look(&names[i])
		if !seen {
			t.Errorf("%v was added, and is taken for new", names[i])
		}
		if has {
			known++
		}
	}
	if !k.has(more) || known != 2*bucketMarks {
		t.Errorf("one more than the buckets have places: it is known %v, and %d in all; want true, %d", k.has(more),
			known, 2*bucketMarks)
	}
}

// TestOwnersOfNames: names that differ only in what follows the URL's hash are told apart.
func TestOwnersOfNames(t *testing.T) {
	k := newKnownNames()
	a := name{queue: 7, hash: [hashLen]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
	tagged, longer := a, a
	tagged.hash[urlLen] = 1
	longer.hash[hashLen-1] = 1
	for _, n := range []*name{&a, &tagged, &longer} {
		if k.has(n) {
			t.Errorf("%v is known before it is added", *n)
		}
		k.add(n)
	}
	k.remove(&tagged)
	if !k.has(&a) || k.has(&tagged) || !k.has(&longer) {
		t.Errorf("after the removal of one, known: %v, %v, %v; want true, false, true", k.has(&a), k.has(&tagged),
			k.has(&longer))
	}
}

// TestNamesOfOneQueueDiffer: short names of a queue that share a bucket have other marks, whichever bit
// differs, and a URL has another bucket or mark in each queue. No name has the mark of a free place.
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
		// has the mark of a, and the buckets of a in the other order
		b = a
		binary.BigEndian.PutUint16(b.hash[:], uint16(knownOf(&a).otherEnd()-knownOf(&a).end)+0xA55A)
		if other := knownOf(&b); other.mark != knownOf(&a).mark || other.end != knownOf(&a).otherEnd() {
			t.Fatalf("%v is to have the mark of %v, and to end with its other bucket", b, a)
		}
		k.remove(&b)
		if !k.has(&a) || k.has(&b) {
			t.Fatalf("%v is known %v, and %v is %v; want true, false", a, k.has(&a), b, k.has(&b))
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
	*s.docs.known, s.queues.before = *newKnownNames(), 1 // as if the store was opened again
	put("http://a.test/1", docindex.Same)
	knows("http://a.test/1", true)
	knows("http://a.test/2", false)
}

// bytes returns the memory that the table takes beyond its 8 MiB.
func (k *knownNames) bytes() int64 { return int64(k.buckets()-leastBuckets) * bucketBytes }

// madeName returns the name of document i of a queue.
func madeName(queue uint32, i uint64) *name {
	n := name{queue: queue}
	binary.BigEndian.PutUint64(n.hash[:], i*0x9E3779B97F4A7C15)
	binary.BigEndian.PutUint16(n.hash[8:], uint16(i*0xA5A5+uint64(queue)))
	return &n
}

// TestKnownNamesGrow: with room for them, 199 in 200 names are remembered, in 12 bytes each. With less
// room some are forgotten, and their memory is released. A name that was forgotten is not taken for new.
func TestKnownNamesGrow(t *testing.T) {
	const names = 2_000_000
	k := newKnownNames()
	count := func() (known int) {
		for i := range uint64(names) {
			has, seen := k.look(madeName(uint32(i%1000), i))
			if !seen {
				t.Fatalf("name %d was added, and is taken for new", i)
			}
			if has {
				known++
			}
		}
		return known
	}
	k.allow(1 << 30)
	for i := range uint64(names) {
		k.add(madeName(uint32(i%1000), i))
	}
	if known, bytes := count(), k.bytes(); known < names*199/200 || bytes > names*12 {
		t.Errorf("of %d names %d are known, and take %d bytes more", names, known, bytes)
	}
	for _, bytes := range []int64{12 << 20, 5 << 20, 0} {
		before := count()
		k.allow(bytes)
		places := k.buckets() * len(nameBucket{}.marks)
		if known := count(); k.bytes() > bytes || known > before || known < min(before, places)*9/10 {
			t.Errorf("with %d bytes: %d names known in %d bytes, of %d", bytes, known, k.bytes(), before)
		}
		if n := (k.buckets() + chunkBuckets - 1) / chunkBuckets; len(k.chunks) > n+1 {
			t.Errorf("with %d bytes: %d chunks of memory; want at most %d", bytes, len(k.chunks), n+1)
		}
	}
}

// TestKnownNamesNeverWrong adds, removes and looks for names while the memory changes. A name is known
// only if it was added and not removed since, and new only if it was not.
func TestKnownNamesNeverWrong(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	k, added := newKnownNames(), map[uint64]bool{}
	hits, news := 0, 0
	for range 3_000_000 {
		i := r.Uint64N(1_500_000)
		n := madeName(uint32(i%7), i)
		has, seen := k.look(n)
		if has {
			hits++
		} else if !seen {
			news++
		}
		if has && !added[i] || !seen && added[i] {
			t.Fatalf("name %d is known: %v, was added: %v; want %v", i, has, seen, added[i])
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
	if hits < 500_000 || news < 500_000 {
		t.Errorf("%d names were known, and %d new; want more", hits, news)
	}
	if taken := takenPlaces(k); k.taken != taken {
		t.Errorf("%d places are taken; the table counts %d", taken, k.taken)
	}
}

func takenPlaces(k *knownNames) (n int) {
	for i := range k.buckets() {
		free, _ := k.bucket(i).free()
		n += bucketMarks - free
	}
	return n
}

// TestKnownNamesFull: a table that may not grow has nearly all its places taken, by the last names.
func TestKnownNamesFull(t *testing.T) {
	k := newKnownNames()
	places := k.buckets() * bucketMarks
	for i := range uint64(3 * places) {
		k.add(madeName(uint32(i%1000), i))
	}
	if taken := takenPlaces(k); taken < places*99/100 || k.taken != taken {
		t.Errorf("of %d places %d are taken; the table counts %d", places, taken, k.taken)
	}
	last := 0
	for i := uint64(2 * places); i < uint64(3*places); i++ {
		if has, _ := k.look(madeName(uint32(i%1000), i)); has {
			last++
		}
	}
	if last < places/2 {
		t.Errorf("of the last %d names %d are known", places, last)
	}
}

// BenchmarkKnownNamesFull is the time to add a name to a table of 64 MiB that may not grow.
func BenchmarkKnownNamesFull(b *testing.B) {
	k := newKnownNames()
	k.allow(56 << 20)
	n := uint64(0)
	for ; n < 10_000_000; n++ {
		k.add(madeName(uint32(n%1000), n))
	}
	for b.Loop() {
		k.add(madeName(uint32(n%1000), n))
		n++
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
	if all < e.shared()*7/8 || all > e.shared() {
		t.Errorf("names take %d bytes of the %d that are for queues and names", all, e.shared())
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
	if most := int64(s.docs.known.most-leastBuckets) * bucketBytes; most < e.shared()*7/8 || most > e.shared() {
		t.Errorf("names may take %d bytes of %d", most, e.shared())
	}
}

// TestNewURLReadsNoRow: a URL that is put first needs no row to be read, neither its own nor that of its
// queue's key, unless they may be from before Open.
func TestNewURLReadsNoRow(t *testing.T) {
	path := t.TempDir()
	reopen := func() *Store {
		t.Helper()
		s, err := Open(Config{Path: path, Sync: None})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	reads := func(s *Store, host string) bool {
		t.Helper()
		var p docindex.Puts
		if err := p.Add(docindex.Put{URL: []byte("http://" + host + "/new"), Crawl: []byte("one")}); err != nil {
			t.Fatal(err)
		}
		s.base.Mu.Lock()
		defer s.base.Mu.Unlock()
		if err := errors.Join(s.txn.begin(), s.docs.prefetch(&p, 0, 1)); err != nil {
			t.Fatal(err)
		}
		defer s.txn.clear()
		s.txn.b.Close()
		return s.txn.reads != nil || s.txn.tables != nil
	}
	s := reopen()
	putFresh(t, s, 0, 2)
	if reads(s, "h1.test") || reads(s, "h9.test") {
		t.Error("rows are read for a new URL")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen()
	putFresh(t, s, 1, 3)
	for host, want := range map[string]bool{"h1.test": true, "h2.test": false, "h9.test": true} {
		if got := reads(s, host); got != want {
			t.Errorf("opened again: rows are read for a new URL of %s: %v; want %v", host, got, want)
		}
	}
}

// TestQueueKeys: a key that was added is found, however many there are. Few others are.
func TestQueueKeys(t *testing.T) {
	const names = 300_000
	k := newQueueKeys(64 << 20)
	for i := range uint64(names) {
		k.add(madeName(0, i))
	}
	wrong := 0
	for i := range uint64(names) {
		if !k.has(madeName(0, i)) {
			t.Fatalf("name %d is not found", i)
		}
		if k.has(madeName(0, names+i)) {
			wrong++
		}
	}
	if len(k.filters) != 2 || len(k.filters[1]) > k.most || wrong > names/50 {
		t.Errorf("%d filters, %d of %d other names are found", len(k.filters), wrong, names)
	}
}
