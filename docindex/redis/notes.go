package redis

import (
	"context"

	"urlserver/docindex"
)

// KeepNotes is [docindex.Notes.KeepNotes]. Redis' memory is for URLs: it keeps no notes.
func (s *Store) KeepNotes(ctx context.Context, _ []docindex.Note) error { return ctx.Err() }

// FindNotes is [docindex.Notes.FindNotes]. It finds none.
func (s *Store) FindNotes(ctx context.Context, _ []string, _ func(i int, text []byte)) error {
	return ctx.Err()
}

// EachNote is [docindex.Notes.EachNote]. It visits none.
func (s *Store) EachNote(ctx context.Context, _ string, _ func(name string, text []byte)) error {
	return ctx.Err()
}
