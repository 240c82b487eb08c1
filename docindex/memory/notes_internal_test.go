package memory

import (
	"fmt"
	"strings"
	"testing"

	"urlserver/docindex/indextest"
)

// When there are too many notes, the oldest are forgotten.
func TestNotes(t *testing.T) {
	s := New()
	indextest.Notes(t, s)
	text := strings.Repeat("x", 60<<10)
	for i := range 1000 {
		indextest.KeepNotes(t, s, fmt.Sprintf("n%03d", i), text)
	}
	n := len(indextest.EachNote(t, s, "n"))
	if most := 2 * notesMax / len(text); n < most/2 || n > most {
		t.Errorf("%d notes of 60 KiB are kept; want at most %d", n, most)
	}
	indextest.WantNotes(t, s, "a1", "", "n000", "", "n999", text, fmt.Sprintf("n%03d", 1000-n), text)
}
