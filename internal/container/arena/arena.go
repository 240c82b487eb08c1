// Package arena keeps short byte strings off the garbage collector's path:
// in chunks without pointers, named by 32-bit references instead of slices.
package arena

import "fmt"

const (
	unit       = 8       // bytes; sizes are rounded up to it and references count in it
	chunkBytes = 1 << 20 // so that a reference finds its chunk by a shift
	chunkUnits = chunkBytes / unit

	// MaxLen is the longest string an arena takes, in bytes.
	MaxLen = 16 << 10
)

// Ref names a string in an Arena; 0 is none. 32 GiB can be named.
type Ref uint32

// Arena holds byte strings. The owner knows their lengths. Freed space is used
// again for strings of the same rounded length. The zero value is ready. Not
// safe for concurrent use.
type Arena struct {
	chunks [][]byte
	next   uint64                    // units used, from the first chunk on
	free   [MaxLen/unit + 1]freeList // by length in units
	live   int                       // bytes, rounded up
}

type freeList []Ref

// New makes room for n bytes, at most MaxLen, and returns it to be filled.
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

// grow takes units from the end. A string never crosses chunks; what is left
// of the last chunk goes to the free lists.
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

// Bytes returns the n bytes at ref; they alias the arena until Free.
func (a *Arena) Bytes(ref Ref, n int) []byte {
	at := int(ref%chunkUnits) * unit
	return a.chunks[ref/chunkUnits][at : at+n : at+n]
}

// Free gives back the n bytes at ref.
func (a *Arena) Free(ref Ref, n int) {
	units := (n + unit - 1) / unit
	a.free[units] = append(a.free[units], ref)
	a.live -= units * unit
}

// Live is the number of bytes in use, rounded up to the arena's unit each.
func (a *Arena) Live() int { return a.live }

// Size is the number of bytes taken from the system.
func (a *Arena) Size() int { return len(a.chunks) * chunkBytes }
