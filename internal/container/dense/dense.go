// Package dense keeps a value for each of many small numbers, in chunks that never move: growing by
// one chunk costs the same however many values there are, while a slice that grows copies all of
// them in one step.
package dense

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
)

// Array holds a value of type T for each number; a number that was never set has the zero value.
// Its memory follows the largest number that At was called with. The zero Array is ready. Not safe
// for concurrent use.
type Array[T any] struct {
	chunks [][]T
}

// At returns the place of a number's value, which stays good.
func (a *Array[T]) At(id uint32) *T {
	n := int(id >> chunkBits)
	for n >= len(a.chunks) {
		a.chunks = append(a.chunks, nil)
	}
	if a.chunks[n] == nil {
		a.chunks[n] = make([]T, chunkLen)
	}
	return &a.chunks[n][id&(chunkLen-1)]
}

// Get returns a number's value.
func (a *Array[T]) Get(id uint32) (value T) {
	if n := int(id >> chunkBits); n < len(a.chunks) && a.chunks[n] != nil {
		return a.chunks[n][id&(chunkLen-1)]
	}
	return value
}

// Cap is a number above all those that At was called with.
func (a *Array[T]) Cap() uint32 { return uint32(len(a.chunks)) << chunkBits }
