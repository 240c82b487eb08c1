package indextest

import (
	"maps"
	"testing"

	"urlserver/docindex"
)

// KeepNotes stores notes: names and texts in turns.
func KeepNotes(t *testing.T, s docindex.Notes, notes ...string) {
	t.Helper()
	var list []docindex.Note
	for i := 0; i < len(notes); i += 2 {
		list = append(list, docindex.Note{Name: notes[i], Text: []byte(notes[i+1])})
	}
	if err := s.KeepNotes(t.Context(), list); err != nil {
		t.Fatal(err)
	}
}

// WantNotes compares the notes of names with what is wanted: names and texts in turns. An empty text
// says that there is no note.
func WantNotes(t *testing.T, s docindex.Notes, want ...string) {
	t.Helper()
	var names []string
	for i := 0; i < len(want); i += 2 {
		names = append(names, want[i])
	}
	got := make([]string, len(names))
	if err := s.FindNotes(t.Context(), names, func(i int, text []byte) { got[i] = string(text) }); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if got[i] != want[2*i+1] {
			t.Errorf("the note %q has %.40q; want %.40q", name, got[i], want[2*i+1])
		}
	}
}

// EachNote returns the notes whose names begin with a prefix.
func EachNote(t *testing.T, s docindex.Notes, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := s.EachNote(t.Context(), prefix, func(name string, text []byte) { all[name] = string(text) }); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(all, func(_, text string) bool { return text == "" })
	return all
}

// Notes tests a store that keeps notes.
func Notes(t *testing.T, s docindex.Notes) {
	KeepNotes(t, s, "a1", "one", "a2", "two", "b", "three", "a1", "four", "c", "\x00\xff")
	KeepNotes(t, s, "a2", "five", "b", "", "never", "")
	WantNotes(t, s, "a1", "four", "c", "\x00\xff", "b", "", "never", "", "a2", "five", "a", "")
	if got := EachNote(t, s, "a"); !maps.Equal(got, map[string]string{"a1": "four", "a2": "five"}) {
		t.Errorf("notes whose names begin with a: %q", got)
	}
	if got := EachNote(t, s, ""); len(got) != 3 {
		t.Errorf("notes: %q; want three", got)
	}
}
