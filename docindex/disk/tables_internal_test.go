package disk

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"urlserver/docindex"
)

// Tables of one flush and of the next have key ranges in common only where rows are not in the order
// of queue numbers. Otherwise each compaction writes all rows anew.
func TestTablesOfNewQueues(t *testing.T) {
	s, err := Open(Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for round := range 3 {
		putNew(t, s, fmt.Sprint("a", round), 500)
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	levels, err := s.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	type span struct{ first, last string }
	spans := map[byte][]span{} // of tables, by their kind of row
	for _, level := range levels {
		for _, table := range level {
			first, last := table.Smallest.UserKey, table.Largest.UserKey
			if !bytes.HasPrefix(first, numberKey(docRow, 0)) { // not names of queues
				spans[first[0]] = append(spans[first[0]], span{string(first), string(last)})
			} else if !bytes.HasPrefix(last, numberKey(docRow, 0)) {
				t.Errorf("a table has names of queues and other rows: %q to %q", first, last)
			}
		}
	}
	for _, kind := range []byte{planRow, docRow, freshRow} {
		tables := spans[kind]
		slices.SortFunc(tables, func(a, b span) int { return strings.Compare(a.first, b.first) })
		end := string(kind)
		for _, table := range tables {
			if table.first <= end || table.last[0] != kind {
				t.Errorf("a table goes from %q to %q, behind one to %q", table.first, table.last, end)
			}
			end = table.last
		}
		if n := len(tables); n != 3 {
			t.Errorf("%d tables have rows of kind %c; want one for each of 3 flushes", n, kind)
		}
	}
}

// Each flush makes a table of some rows of the journal. Compactions take these tables, too: or else
// reads look into ever more of them.
func TestFlushesLeaveFewTables(t *testing.T) {
	s, err := Open(Config{Path: t.TempDir(), Sync: None})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const flushes, most = 60, 20
	for n := range flushes {
		putNew(t, s, fmt.Sprint("a", n), 20)
		if err := s.db.flush(); err != nil {
			t.Fatal(err)
		}
		<-s.db.memtables.list[len(s.db.memtables.list)-2].flushed
	}
	over := time.Now().Add(time.Minute)
	for s.db.Metrics().Levels[0].Sublevels > most && time.Now().Before(over) {
		time.Sleep(time.Millisecond) // a pause between two looks
	}
	if n := s.db.Metrics().Levels[0].Sublevels; n > most {
		t.Errorf("after %d flushes a read looks into %d tables of the first level; want at most %d", flushes, n, most)
	}
}

// A store of version 6 has nearly as many tables in the first level as there may be while no compaction
// runs. Its upgrade writes more than one memtable takes.
func TestUpgradeBesideManyTables(t *testing.T) {
	if testing.Short() {
		t.Skip("upgrades 150,000 hosts")
	}
	s, err := Open(Config{Path: t.TempDir(), Sync: None})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 150 {
		putNew(t, s, fmt.Sprint("a", n), 1000)
	}
	s.db.merging.end()
	for n := 0; s.db.Metrics().Levels[0].Sublevels < 36; n++ {
		putNew(t, s, fmt.Sprint("b", n), 20)
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AsVersion6(true); err != nil {
		t.Fatal(err)
	}
	crashed := filepath.Join(t.TempDir(), "store") // Checkpoint makes it
	if err := s.db.Checkpoint(crashed); err != nil {
		t.Fatal(err)
	}
	s.db.merging.begin()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error)
	go func() {
		s, err := Open(Config{Path: crashed, Sync: None})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Minute):
		t.Error("the store does not open")
	}
}

// An older program, which has all rows in the filters of its tables, finds each row of a newer table.
func TestOlderProgramFindsRows(t *testing.T) {
	path := t.TempDir()
	s, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	putNew(t, s, "a", 500)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o := &pebble.Options{ReadOnly: true, Logger: &logger{}}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ok := rows.First(); ok; ok = rows.Next() {
		_, closer, err := db.Get(rows.Key())
		if err != nil {
			t.Fatalf("row %q: %v", rows.Key(), err)
		}
		closer.Close()
		n++
	}
	if n < 1500 {
		t.Errorf("%d rows; want at least three for each of 500 hosts", n)
	}
}

func putNew(t *testing.T, s *Store, prefix string, hosts int) {
	t.Helper()
	var p docindex.Puts
	for i := range hosts {
		if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://%s-%d.test/", prefix, i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}
