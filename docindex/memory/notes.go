package memory

import (
	"bytes"
	"context"
	"strings"
	"sync"

	"urlserver/docindex"
)

// notes is a cache in two generations. When the newer one is full, it takes the place of the older
// one, whose notes are forgotten. The zero value is ready.
type notes struct {
	mu           sync.Mutex
	newer, older map[string][]byte
	bytes        int // of newer
}

const (
	notesMax  = 16 << 20 // bytes of a generation
	noteBytes = 100      // that a note takes besides its name and text
)

// KeepNotes is [docindex.Notes.KeepNotes].
func (m *Store) KeepNotes(ctx context.Context, list []docindex.Note) error {
	n := &m.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range list {
		delete(n.older, one.Name)
		if old, known := n.newer[one.Name]; known {
			n.bytes -= len(one.Name) + len(old) + noteBytes
			delete(n.newer, one.Name)
		}
		size := len(one.Name) + len(one.Text) + noteBytes
		if len(one.Text) == 0 || size > 2*docindex.MaxNote {
			continue
		}
		if n.bytes+size > notesMax || n.newer == nil {
			n.older, n.newer, n.bytes = n.newer, map[string][]byte{}, 0
		}
		n.newer[one.Name] = bytes.Clone(one.Text)
		n.bytes += size
	}
	return ctx.Err()
}

// FindNotes is [docindex.Notes.FindNotes].
func (m *Store) FindNotes(ctx context.Context, names []string, found func(i int, text []byte)) error {
	n := &m.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, name := range names {
		text := n.newer[name]
		if text == nil {
			text = n.older[name]
		}
		if text != nil {
			found(i, text)
		}
	}
	return ctx.Err()
}

// EachNote is [docindex.Notes.EachNote].
func (m *Store) EachNote(ctx context.Context, prefix string, visit func(name string, text []byte)) error {
	n := &m.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, all := range []map[string][]byte{n.older, n.newer} {
		for name, text := range all {
			if strings.HasPrefix(name, prefix) {
				visit(name, text)
			}
		}
	}
	return ctx.Err()
}
