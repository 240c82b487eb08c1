package timeheap

const (
	chunkBits = 8
	chunkLen  = 1 << chunkBits
	numbers   = 1<<31 - 1 // a mask: numbers of entries begin again at 0
)

// run is a queue of entries that were added in order. Entries have consecutive numbers. One that
// was removed from the middle leaves a gap, so the first and the last are no gaps. The zero value
// is empty. Chunks are used again.
type run struct {
	chunks     []*[chunkLen]entry
	base       uint32 // the number of the first place of the first chunk
	first, end uint32 // the number of the first entry, and of the next one
	live       int    // entries that are no gaps
}

// gap is the id of an entry that was removed.
const gap = ^uint32(0)

func (r *run) at(n uint32) *entry {
	i := (n - r.base) & numbers
	return &r.chunks[i>>chunkBits][i%chunkLen]
}

// push adds an entry at the end and returns its number.
func (r *run) push(e entry) (n uint32) {
	n = r.end
	if int((n-r.base)&numbers>>chunkBits) == len(r.chunks) {
		r.chunks = append(r.chunks, new([chunkLen]entry))
	}
	*r.at(n) = e
	r.end = (n + 1) & numbers
	r.live++
	return n
}

// last returns the last entry. There must be one.
func (r *run) last() entry { return *r.at((r.end - 1) & numbers) }

// remove removes an entry, and gaps at either end.
func (r *run) remove(n uint32) {
	r.at(n).id = gap
	if r.live--; r.live == 0 {
		r.first, r.end, r.base = 0, 0, 0
		return
	}
	for r.at(r.first).id == gap {
		r.first = (r.first + 1) & numbers
		if (r.first-r.base)&numbers == chunkLen {
			r.base = r.first
			c := r.chunks[0]
			r.chunks[copy(r.chunks, r.chunks[1:])] = c
		}
	}
	for r.last().id == gap {
		r.end = (r.end - 1) & numbers
	}
}

// length returns the number of entries and gaps.
func (r *run) length() int { return int((r.end - r.first) & numbers) }
