package disk

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/books"
	"urlserver/docindex/internal/doors"
)

// tellAtSlots tells of the documents of a crawl that the slots have.
func (s *Store) tellAtSlots(ctx context.Context, b *books.Book, tell func(*docindex.Outcomes) error) (err error) {
	for next := uint32(1); next != 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var out docindex.Outcomes
		if next, err = s.someAtSlots(b, next, &out); err != nil {
			return err
		}
		if out.Len() == 0 {
			continue
		}
		if err := tell(&out); err != nil {
			return err
		}
	}
	return nil
}

// someAtSlots adds documents of a crawl that the slots have, from a number of transits on, and returns the one to go on
// with, or 0.
func (s *Store) someAtSlots(b *books.Book, from uint32, out *docindex.Outcomes) (next uint32, err error) {
	some, next, it, err := s.namesAtSlots(b, from)
	if it == nil {
		return next, err
	}
	slices.SortFunc(some, func(x, y placed) int { return bytes.Compare(x.key, y.key) })
	for _, one := range some {
		if err = s.addAtSlots(b, &one, it, out); err != nil {
			break
		}
	}
	if err = errors.Join(err, it.Close()); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return 0, s.failLocked(err)
	}
	return next, nil
}

// placed is a document and where its body is.
type placed struct {
	name name
	key  []byte
}

// namesAtSlots is someAtSlots but for bodies, which the iterator reads as they are now; it is nil where there are none.
func (s *Store) namesAtSlots(b *books.Book, from uint32) (some []placed, next uint32, it *pebble.Iterator, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return nil, 0, nil, err
	}
	if b.Count[books.AtSlots] == 0 {
		return nil, 0, nil, nil
	}
	for id := from; int(id) < s.transits.Cap(); id++ {
		if len(some) == tellHold || id == from+lookHold {
			next = id
			break
		}
		t := s.transits.At(id)
		if t.member != 0 && t.door == doors.Slots && s.crawls.chapters[t.member].domain.Book == b {
			some = append(some, placed{t.name, planKey(nil, t.name.queue, &t.at)})
		}
	}
	if len(some) > 0 {
		it, err = s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{planRow}, UpperBound: []byte{planRow + 1}})
	}
	return some, next, it, err
}

// addAtSlots adds a document that was at the slots when it began to read.
func (s *Store) addAtSlots(b *books.Book, one *placed, it *pebble.Iterator, out *docindex.Outcomes) error {
	if !it.SeekGE(one.key) || !bytes.Equal(it.Key(), one.key) {
		return errors.Join(it.Error(), errRow)
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return err
	}
	body, err := readPlan(value)
	if err != nil {
		return err
	}
	docID := body.id
	if len(docID) == 0 {
		docID = s.secret.docID(nil, &one.name)
	}
	out.Add(docindex.Outcome{DocID: docID, URL: body.url, Kind: docindex.Kind(b.Why)})
	return nil
}
