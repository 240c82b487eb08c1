package disk

import (
	"fmt"
	"strings"
	"testing"

	"urlserver/docindex/indextest"
)

// Notes outlive a restart. When there are too many, the oldest are forgotten and the others stay.
func TestNotes(t *testing.T) {
	path := t.TempDir()
	open := func() *Store {
		s, err := Open(Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	indextest.Notes(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	indextest.WantNotes(t, s, "a1", "four", "b", "", "a2", "five")
	s.notes.most = 10 << 10
	text := strings.Repeat("x", 1<<10)
	for i := range 100 {
		indextest.KeepNotes(t, s, fmt.Sprintf("n%03d", i), text)
		if i%10 == 5 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open()
			s.notes.most = 10 << 10
		}
	}
	defer s.Close()
	n := len(indextest.EachNote(t, s, "n"))
	if least, most := 3*9, 4*11; n < least || n > most {
		t.Errorf("%d notes of 1 KiB are kept; want %d to %d", n, least, most)
	}
	indextest.WantNotes(t, s, "a1", "", "n000", "", "n099", text, fmt.Sprintf("n%03d", 100-n), text,
		fmt.Sprintf("n%03d", 100-n-1), "")
	big := strings.Repeat("y", 70<<10)
	indextest.KeepNotes(t, s, "big", big, "small", "z")
	indextest.WantNotes(t, s, "big", "", "small", "z")
}
