package disk

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
)

// notes says which generations of notes are on disk. A note is written to the newest one. When that
// is full, the next one begins and the oldest one is deleted as a whole, so no call has to look for
// what is old. A note whose row is in several generations has the text of the newest.
type notes struct {
	oldest, newest uint32
	bytes          int // of the newest, rows that were replaced included; the row without a name has it
	most           int // bytes of a generation
}

const (
	noteGenerations = 4
	notesMax        = 1 << 30 // bytes of all notes, before compression
)

func noteKey(dst []byte, generation uint32, name string) []byte {
	return append(binary.BigEndian.AppendUint32(append(dst, noteRow), generation), name...)
}

// loadNotes finds the generations.
func (s *Store) loadNotes() error {
	s.notes = notes{oldest: 1, newest: 1, most: notesMax / noteGenerations}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{noteRow}, UpperBound: []byte{noteRow + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	if !it.First() {
		return it.Error()
	}
	oldest := it.Key()
	if len(oldest) < len(noteKey(nil, 0, "")) {
		return damaged(errRow)
	}
	s.notes.oldest = binary.BigEndian.Uint32(oldest[1:])
	it.Last()
	s.notes.newest = binary.BigEndian.Uint32(it.Key()[1:])
	value, err := s.get(noteKey(nil, s.notes.newest, ""))
	r := reader{b: value}
	s.notes.bytes = int(r.uint())
	if r.bad {
		return damaged(errRow)
	}
	return err
}

// KeepNotes is [docindex.Notes.KeepNotes].
func (s *Store) KeepNotes(ctx context.Context, list []docindex.Note) error {
	if err := ctx.Err(); err != nil || len(list) == 0 {
		return err
	}
	b, no, err := s.keepNotes(list)
	if err != nil {
		return err
	}
	return s.waitSync(b, no)
}

// keepNotes writes notes, in a batch of their own: the journal has nothing of them.
func (s *Store) keepNotes(list []docindex.Note) (b *pebble.Batch, no uint64, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return nil, 0, err
	}
	if err := s.space.check(); err != nil {
		return nil, 0, err
	}
	b = s.db.NewBatch()
	var key []byte
	for _, n := range list {
		if len(n.Name) > docindex.MaxNote || len(n.Text) > docindex.MaxNote {
			continue
		}
		s.nextGenerationLocked(b)
		key = noteKey(key[:0], s.notes.newest, n.Name)
		b.Set(key, n.Text, nil) // it cannot fail on a Batch that belongs to no commit
		s.notes.bytes += len(key) + len(n.Text)
	}
	b.Set(noteKey(key[:0], s.notes.newest, ""), binary.AppendUvarint(nil, uint64(s.notes.bytes)), nil)
	size, rows := b.Len(), int(b.Count())
	s.space.wrote(size)
	b, err = s.writeBatchLocked(b, s.cfg.Sync == Batch)
	if err == nil && s.memtables.count(size, rows) {
		err = s.flushLocked()
	}
	if err != nil {
		return nil, 0, s.failLocked(err)
	}
	return b, s.journal.no, nil
}

// nextGenerationLocked begins a generation if the newest one is full.
func (s *Store) nextGenerationLocked(b *pebble.Batch) {
	n := &s.notes
	if n.bytes < n.most {
		return
	}
	n.newest, n.bytes = n.newest+1, 0
	if until := n.newest - noteGenerations + 1; n.newest >= noteGenerations && n.oldest < until {
		b.DeleteRange(noteKey(nil, n.oldest, ""), noteKey(nil, until, ""), nil)
		n.oldest = until
	}
}

// generations returns the generations that may have notes.
func (s *Store) generations() (oldest, newest uint32) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	return s.notes.oldest, s.notes.newest
}

// FindNotes is [docindex.Notes.FindNotes].
func (s *Store) FindNotes(ctx context.Context, names []string, found func(i int, text []byte)) error {
	if err := s.helper(); err != nil {
		return err
	}
	defer s.helpers.Done()
	oldest, newest := s.generations()
	var key []byte
	for i, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		for g := newest; g >= oldest; g-- {
			key = noteKey(key[:0], g, name)
			text, err := s.get(key)
			if err != nil {
				return err
			}
			if text == nil {
				continue
			}
			if len(text) > 0 {
				found(i, text)
			}
			break
		}
	}
	return nil
}

// EachNote is [docindex.Notes.EachNote].
func (s *Store) EachNote(ctx context.Context, prefix string, visit func(name string, text []byte)) error {
	if err := s.helper(); err != nil {
		return err
	}
	defer s.helpers.Done()
	oldest, newest := s.generations()
	for g := oldest; g <= newest; g++ {
		if err := s.eachNoteOf(ctx, noteKey(nil, g, prefix), visit); err != nil {
			return err
		}
	}
	return nil
}

// eachNoteOf visits the notes whose keys begin with a prefix, which has a generation.
func (s *Store) eachNoteOf(ctx context.Context, prefix []byte, visit func(name string, text []byte)) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix})
	if err != nil {
		return err
	}
	defer it.Close()
	head := len(noteKey(nil, 0, ""))
	for it.First(); it.Valid() && bytes.HasPrefix(it.Key(), prefix) && ctx.Err() == nil; it.Next() {
		text, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if name := it.Key()[head:]; len(name) > 0 {
			visit(string(name), text)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return it.Error()
}
