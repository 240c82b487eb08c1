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
// old notes. A note whose row is in several generations has the text of the newest.
type notes struct {
	db             *database
	oldest, newest uint32
	bytes          int // of the newest generation, replaced rows included; the generation's row without a name has it
	most           int // bytes of a generation
}

const (
	noteGenerations = 4
	notesMax        = 1 << 30 // bytes of all notes, before compression
)

func noteKey(dst []byte, generation uint32, name string) []byte {
	return append(binary.BigEndian.AppendUint32(append(dst, noteRow), generation), name...)
}

// load finds the generations.
func (x *notes) load() error {
	x.oldest, x.newest, x.most = 1, 1, notesMax/noteGenerations
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: []byte{noteRow}, UpperBound: []byte{noteRow + 1}})
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
	x.oldest = binary.BigEndian.Uint32(oldest[1:])
	it.Last()
	x.newest = binary.BigEndian.Uint32(it.Key()[1:])
	value, err := x.db.get(noteKey(nil, x.newest, ""))
	r := reader{b: value}
	x.bytes = int(r.uint())
	if r.bad {
		return damaged(errRow)
	}
	return err
}

// KeepNotes is [docindex.Notes.KeepNotes].
func (x *notes) KeepNotes(ctx context.Context, list []docindex.Note) error {
	if err := ctx.Err(); err != nil || len(list) == 0 {
		return err
	}
	b, err := x.keep(list)
	if err != nil {
		return err
	}
	return x.db.waitSync(b, 0)
}

// keep writes notes, in a batch of their own: the journal does not contain notes.
func (x *notes) keep(list []docindex.Note) (b *pebble.Batch, err error) {
	x.db.mu.Lock()
	defer x.db.mu.Unlock()
	if err := x.db.usable(); err != nil {
		return nil, err
	}
	if err := x.db.space.check(); err != nil {
		return nil, err
	}
	b = x.db.NewBatch()
	var key []byte
	for _, n := range list {
		if len(n.Name) > docindex.MaxNote || len(n.Text) > docindex.MaxNote {
			continue
		}
		x.nextGeneration(b)
		key = noteKey(key[:0], x.newest, n.Name)
		b.Set(key, n.Text, nil) // it cannot fail on a Batch that belongs to no commit
		x.bytes += len(key) + len(n.Text)
	}
	b.Set(noteKey(key[:0], x.newest, ""), binary.AppendUvarint(nil, uint64(x.bytes)), nil)
	return x.db.write(b, x.db.cfg.Sync == Batch)
}

// nextGeneration begins a generation if the newest one is full.
func (x *notes) nextGeneration(b *pebble.Batch) {
	if x.bytes < x.most {
		return
	}
	x.newest, x.bytes = x.newest+1, 0
	if until := x.newest - noteGenerations + 1; x.newest >= noteGenerations && x.oldest < until {
		b.DeleteRange(noteKey(nil, x.oldest, ""), noteKey(nil, until, ""), nil)
		x.oldest = until
	}
}

// generations returns the generations that may have notes.
func (x *notes) generations() (oldest, newest uint32) {
	x.db.mu.Lock()
	defer x.db.mu.Unlock()
	return x.oldest, x.newest
}

// FindNotes is [docindex.Notes.FindNotes].
func (x *notes) FindNotes(ctx context.Context, names []string, found func(i int, text []byte)) error {
	if err := x.db.helper(); err != nil {
		return err
	}
	defer x.db.helpers.Done()
	oldest, newest := x.generations()
	var key []byte
	for i, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		for g := newest; g >= oldest; g-- {
			key = noteKey(key[:0], g, name)
			text, err := x.db.get(key)
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
func (x *notes) EachNote(ctx context.Context, prefix string, visit func(name string, text []byte)) error {
	if err := x.db.helper(); err != nil {
		return err
	}
	defer x.db.helpers.Done()
	oldest, newest := x.generations()
	for g := oldest; g <= newest; g++ {
		if err := x.eachOf(ctx, noteKey(nil, g, prefix), visit); err != nil {
			return err
		}
	}
	return nil
}

// eachOf visits the notes whose keys begin with a prefix, which has a generation.
func (x *notes) eachOf(ctx context.Context, prefix []byte, visit func(name string, text []byte)) error {
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: prefix})
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
