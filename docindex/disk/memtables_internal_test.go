package disk

import (
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

// TestFilter checks that the filter finds all names that were added, and few others.
func TestFilter(t *testing.T) {
	const n = 40_000
	f := newFilter(memtableLines)
	secret := newDocNamer()
	at := func(i int) *name {
		n := secret.name(uint32(i%100), fmt.Appendf(nil, "http://a.test/%d", i/3))
		return &n
	}
	for i := range n {
		f.add(at(i))
	}
	wrong := 0
	for i := range n {
		if !f.has(at(i)) {
			t.Fatalf("name %d is not found", i)
		}
		if f.has(at(n + 1000 + i)) {
			wrong++
		}
	}
	if wrong > n/200 {
		t.Errorf("%d of %d unknown names are found; want one in a thousand", wrong, n)
	}
}

// TestRecent checks the filter for rows in memtables, rows that are being flushed, and rows in
// tables.
func TestRecent(t *testing.T) {
	s, err := Open(Config{Path: t.TempDir(), Sync: None, Log: zerolog.New(zerolog.NewTestWriter(t))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func(path string, want docindex.Verdict) {
		*s.docs.known, s.queues.before = *newKnownNames(), 1 // as if it was opened again: the put reads the row
		t.Helper()
		var p docindex.Puts
		if err := p.Add(docindex.Put{URL: []byte("http://a.test/" + path)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), &p); err != nil || p.Verdict(0) != want {
			t.Fatalf("Put of %s: %v, %v; want %v", path, p.Verdict(0), err, want)
		}
	}
	has := func(path string) bool {
		n := s.docs.namer.name(1, []byte("http://a.test/"+path))
		return s.db.memtables.has(&n)
	}
	want := func(when string, what map[string]bool) {
		t.Helper()
		for path, is := range what {
			if has(path) != is {
				t.Errorf("%s: %s may be in a memtable: %v; want %v", when, path, !is, is)
			}
		}
	}
	put("old", docindex.New)
	want("before the first flush", map[string]bool{"old": true, "none": true})
	s.db.memtables.most = 1
	put("first", docindex.New)
	s.db.memtables.most = tableSize
	flushed := s.db.memtables.list[0].flushed // the next put may find it closed, and drop the generation
	put("second", docindex.New)
	<-flushed
	s.db.memtables.dropFlushed()
	want("after a flush", map[string]bool{"old": false, "first": false, "second": true, "none": false})
	put("old", docindex.Same)
	put("second", docindex.Same)
	if n, err := s.Purge(t.Context(), docindex.Scope{Key: []byte("a.test")},
		time.Now().AddDate(1, 0, 0)); n != 3 || err != nil {
		t.Fatalf("Purge = %d, %v; want 3", n, err)
	}
	want("after a purge", map[string]bool{"old": true, "first": true})
	put("old", docindex.New)
	s.db.memtables.most = 1
	put("last", docindex.New)
	<-s.db.memtables.list[0].flushed
	put("first", docindex.New)
	put("old", docindex.Same)
	put("last", docindex.Same)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestRecentWithinTxn lets a flush end after a txn has opened its iterator over tables.
func TestRecentWithinTxn(t *testing.T) {
	s, err := Open(Config{Path: t.TempDir(), Sync: None, Log: zerolog.New(zerolog.NewTestWriter(t))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	flush := func() {
		if err := s.db.flush(); err != nil {
			t.Fatal(err)
		}
		<-s.db.memtables.list[len(s.db.memtables.list)-2].flushed
	}
	name := func(path string) *name {
		n := s.docs.namer.name(1, []byte("http://a.test/"+path))
		return &n
	}
	s.base.Mu.Lock()
	flush() // from here on it is known what is in memtables
	s.db.memtables.dropFlushed()
	s.base.Mu.Unlock()
	var p docindex.Puts
	if err := p.Add(docindex.Put{URL: []byte("http://a.test/known")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	defer s.txn.clear()
	look := func(path string, want bool) {
		t.Helper()
		if row, err := s.txn.row(name(path)); err != nil || (row != nil) != want {
			t.Errorf("%s has the row %q, %v; want one: %v", path, row, err, want)
		}
	}
	look("none", false) // in tables
	flush()
	s.db.memtables.add(name("late"))
	look("late", false) // in memtables, too
	look("known", true)
}

// TestFlushBeforePebble: there is always room for the next commit where those before were like it, with
// what Pebble wants to be free, so Pebble flushes nothing by itself.
func TestFlushBeforePebble(t *testing.T) {
	const pebbleRoom = 20*8 + 24 + 8 + 8 // a node of the highest tower, the trailer of its key, and padding
	for rows := 4; rows <= 6000; rows += 7 {
		r := newMemtableFilter(tableSize)
		for bytes, used := rows*57, 0; ; {
			if used += bytes + rows*entryCost; r.count(bytes, rows) {
				break
			}
			if used+bytes+rows*pebbleRoom > tableSize {
				t.Fatalf("after commits of %d rows a memtable with %d bytes is not flushed", rows, used)
			}
		}
		if least := tableSize - 2*rows*(57+entryRoom) - tableSize/16; r.size < least {
			t.Fatalf("with commits of %d rows a memtable of %d bytes is flushed; want %d", rows, r.size, least)
		}
	}
}
