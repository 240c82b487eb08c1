// Package slab keeps records of one type in chunks that never move, numbered
// from 1, with a free-list. Records should hold no pointers: then the garbage
// collector looks at one slice header per chunk and at nothing inside.
package slab

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
)

// Slab holds records of type T. The zero value is ready. Not safe for
// concurrent use.
type Slab[T any] struct {
	chunks [][]T
	free   []uint32
	next   uint32 // the number of the next record never used; 0 means 1
	live   int
}

// New returns the number of a zeroed record. Numbers start at 1, so 0 can
// mean "none".
func (s *Slab[T]) New() uint32 {
	s.live++
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		return id
	}
	if s.next == 0 {
		s.next = 1
	}
	id := s.next
	s.next++
	if int(id>>chunkBits) == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, chunkLen))
	}
	return id
}

// At returns record id, which must be live. The pointer stays good until Free.
func (s *Slab[T]) At(id uint32) *T {
	return &s.chunks[id>>chunkBits][id&(chunkLen-1)]
}

// Free zeroes record id and gives its number away again.
func (s *Slab[T]) Free(id uint32) {
	var zero T
	*s.At(id) = zero
	s.free = append(s.free, id)
	s.live--
}

// Len is the number of live records.
func (s *Slab[T]) Len() int { return s.live }

// Cap is one more than the largest number ever given out.
func (s *Slab[T]) Cap() int { return int(max(s.next, 1)) }
