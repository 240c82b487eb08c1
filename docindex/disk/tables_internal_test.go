package disk

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

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
		var p docindex.Puts
		for i := range 500 {
			if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://a%d-%d.test/", round, i)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Put(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
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
