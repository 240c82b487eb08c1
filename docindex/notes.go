package docindex

import "context"

// Notes is a bounded cache of what the daemon has learned: a text by name. A store may forget any
// note, the oldest first. An index on disk has them after a restart, too.
type Notes interface {
	// KeepNotes stores notes, each in place of the one with its name. An empty text removes that.
	// A store may ignore notes whose name or text is longer than MaxNote.
	KeepNotes(ctx context.Context, notes []Note) error

	// FindNotes calls found with the index and the text of each name that has a note. The text is
	// valid during the call only.
	FindNotes(ctx context.Context, names []string, found func(i int, text []byte)) error

	// EachNote calls visit with the notes whose names begin with a prefix. It may visit a name
	// several times: the last text counts, and that may be empty. Name and text are valid during
	// the call only.
	EachNote(ctx context.Context, prefix string, visit func(name string, text []byte)) error
}

// Note is a text by name. The name is not empty.
type Note struct {
	Name string
	Text []byte
}

// RoundNotes begins the names of notes with the [Round]s of a crawl; the crawl's ID follows. A
// store that several daemons share keeps only these notes. A daemon that starts takes over the
// rounds of the daemon that wrote the note last.
const RoundNotes = "crawl rounds "

// MaxNote is the most bytes of a note's name, and of its text.
const MaxNote = 64 << 10
