// Package dense stores a value for each of many small numbers, in chunks that never move. Growing
// by one chunk costs the same for any number of values, while a growing slice copies all values at
// once.
package dense

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
)

// Array stores a value of type T for each number. A number that was never set has the zero value.
// The memory depends on the largest number passed to At. The zero Array is ready. Not safe for
// concurrent use.
type Array[T any] struct {
	chunks [][]T
}

// At returns a pointer to the value of a number. It stays valid.
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

// Get returns the value of a number.
func (a *Array[T]) Get(id uint32) (value T) {
	if n := int(id >> chunkBits); n < len(a.chunks) && a.chunks[n] != nil {
		return a.chunks[n][id&(chunkLen-1)]
	}
	return value
}

// Cap returns a number above all numbers passed to At.
func (a *Array[T]) Cap() uint32 { return uint32(len(a.chunks)) << chunkBits }
