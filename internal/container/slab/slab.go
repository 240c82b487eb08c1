// Package slab stores records of one type in chunks that never move, numbered from 1, with a free
// list. If the records hold no pointers, the garbage collector scans one slice header per chunk and
// no record.
package slab

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
)

// Slab stores records of type T. The zero value is ready. Not safe for concurrent use.
type Slab[T any] struct {
	chunks []*[chunkLen]T
	free   []uint32
	next   uint32 // the number of the next unused record; 0 means 1
	live   int
}

// New returns the number of a zeroed record. It is never 0, so 0 can mean "none".
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
		s.chunks = append(s.chunks, new([chunkLen]T))
	}
	return id
}

// At returns record id, which must be live. The pointer stays valid until Free.
func (s *Slab[T]) At(id uint32) *T {
	return &s.chunks[id>>chunkBits][id&(chunkLen-1)]
}

// Free zeroes record id and frees its number.
func (s *Slab[T]) Free(id uint32) {
	var zero T
	*s.At(id) = zero
	s.free = append(s.free, id)
	s.live--
}

// Len returns the number of live records.
func (s *Slab[T]) Len() int { return s.live }

// Cap returns one more than the largest number ever returned by New.
func (s *Slab[T]) Cap() int { return int(max(s.next, 1)) }
