package disk

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
)

// Opening a database does not wait for its compactions: none runs before begin, and one runs after.
func TestOpenBeforeCompactions(t *testing.T) {
	path := t.TempDir()
	openIt := func() (*pebble.DB, *compactions) {
		c := newCompactions()
		s, err := newSpace(path, make(chan struct{}))
		if err != nil {
			t.Fatal(err)
		}
		db, err := openDB(path, options(s, 0, &logger{fatal: func(err error) { t.Fatal(err) }}, c))
		if err != nil {
			t.Fatal(err)
		}
		return db, c
	}
	db, _ := openIt()
	for i := range compactAt { // tables on top of each other
		for j := range 10 {
			if err := db.Set(fmt.Appendf(nil, "%d", j), fmt.Appendf(nil, "%d", i), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db, c := openIt()
	defer db.Close()
	if m := db.Metrics(); m.Compact.Count != 0 || m.Compact.NumInProgress != 0 || m.Levels[0].Sublevels < compactAt/2 {
		t.Fatalf("opened: %d compactions done, %d in progress, %d tables on top of each other; want "+
			"none, and some to compact",
			m.Compact.Count, m.Compact.NumInProgress, m.Levels[0].Sublevels)
	}
	c.begin()
	for end := time.Now().Add(5 * time.Minute); db.Metrics().Compact.Count == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no compaction five minutes after they were allowed")
		}
	}
}

// A closed store leaves no rows in its logs. So Open has no log to replay, and flushes nothing.
func TestCloseLeavesNoLogs(t *testing.T) {
	cfg := Config{Path: t.TempDir()}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var p docindex.Puts
	for i := range 1000 {
		if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://a%d.test/", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := s.db.Metrics().Levels[0].TablesFlushed; n != 0 {
		t.Errorf("opened: %d tables made of logs; want none", n)
	}
	if n := s.Stats().Scheduled; n != 1000 {
		t.Errorf("%d URLs are scheduled; want 1000", n)
	}
}
