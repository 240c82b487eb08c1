// Package arena stores short byte strings in chunks without pointers, so that the garbage collector
// does not scan them. 32-bit references name the strings.
package arena

import "fmt"

const (
	unit       = 8       // bytes; sizes are rounded up to a multiple, and references count units
	chunkBytes = 1 << 20 // a power of two, so that a shift finds a reference's chunk
	chunkUnits = chunkBytes / unit

	// MaxLen is the length of the longest string in an arena, in bytes.
	MaxLen = 32 << 10
)

// Ref names a string in an Arena; 0 is none. References cover 32 GiB.
type Ref uint32

// Arena stores byte strings. The caller remembers their lengths. New reuses freed space for strings
// of the same rounded length. The zero value is ready. Not safe for concurrent use.
type Arena struct {
	chunks [][]byte
	next   uint64                    // units used, from the first chunk on
	free   [MaxLen/unit + 1]freeList // by length in units
	live   int                       // bytes, rounded up
}

type freeList []Ref

// New allocates n bytes, at most MaxLen. The caller fills them.
func (a *Arena) New(n int) (Ref, []byte) {
	units := (n + unit - 1) / unit
	if n <= 0 || units >= len(a.free) {
		panic(fmt.Sprintf("arena: a string of %d bytes; 1 to %d fit", n, MaxLen))
	}
	a.live += units * unit
	if list := a.free[units]; len(list) > 0 {
		ref := list[len(list)-1]
		a.free[units] = list[:len(list)-1]
		return ref, a.Bytes(ref, n)
	}
	ref := a.grow(uint64(units))
	return ref, a.Bytes(ref, n)
}

// grow allocates units at the end. A string lies in one chunk; the rest of the last chunk goes to
// the free lists.
func (a *Arena) grow(units uint64) Ref {
	if a.next == 0 {
		a.next = 1 // reference 0 is none
	}
	if rest := uint64(chunkUnits) - a.next%chunkUnits; rest < units {
		if rest < uint64(len(a.free)) {
			a.free[rest] = append(a.free[rest], Ref(a.next))
		}
		a.next += rest
	}
	if a.next+units > 1<<32 {
		panic("arena: 32 GiB are full")
	}
	if int(a.next/chunkUnits) == len(a.chunks) {
		a.chunks = append(a.chunks, make([]byte, chunkBytes))
	}
	ref := Ref(a.next)
	a.next += units
	return ref
}

// Bytes returns the n bytes at ref. They alias the arena until Free.
func (a *Arena) Bytes(ref Ref, n int) []byte {
	at := int(ref%chunkUnits) * unit
	return a.chunks[ref/chunkUnits][at : at+n : at+n]
}

// Free frees the n bytes at ref.
func (a *Arena) Free(ref Ref, n int) {
	units := (n + unit - 1) / unit
	a.free[units] = append(a.free[units], ref)
	a.live -= units * unit
}

// Live returns the number of bytes in use. Each string counts rounded up to whole units.
func (a *Arena) Live() int { return a.live }

// Size returns the number of bytes allocated from the system.
func (a *Arena) Size() int { return len(a.chunks) * chunkBytes }
