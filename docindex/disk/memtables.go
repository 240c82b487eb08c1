package disk

import "encoding/binary"

// memtableFilter says which documents' rows may be in Pebble's memtables. The store looks for all
// other rows only in the tables on disk: these have filters of their own, while each memtable costs
// a search.
//
// It has a filter for each generation, which is what one flush writes into tables. The store asks
// for a flush a little before Pebble would begin one, so it knows which rows the flush writes and
// when it is done. The zero value is not ready: use newMemtableFilter.
type memtableFilter struct {
	most int // bytes that a generation takes of a memtable
	size int // bytes of the last generation, about
	list []generation
}

// generation has the names whose rows were written between two flushes.
type generation struct {
	names   filter          // nil: it may have any
	flushed <-chan struct{} // is closed when it is in tables; nil: it is the last one, which grows
}

// newMemtableFilter returns a filter that reports every name until the first flush is done. bytes
// is the size of a memtable.
func newMemtableFilter(bytes int) memtableFilter {
	return memtableFilter{most: bytes * 31 / 32, list: []generation{{}}}
}

// add records that a document's row is written or deleted.
func (r *memtableFilter) add(n *name) {
	if f := r.list[len(r.list)-1].names; f != nil {
		f.add(n)
	}
}

// has reports whether a document may have been added since the last flush that is in tables.
func (r *memtableFilter) has(n *name) bool {
	for i := range r.list {
		if f := r.list[i].names; f == nil || f.has(n) {
			return true
		}
	}
	return false
}

// dropFlushed drops the generations that are in tables. An iterator on the tables has to be opened
// after that.
func (r *memtableFilter) dropFlushed() {
	for {
		select {
		case <-r.list[0].flushed: // never of the last one
			r.list = r.list[1:]
		default:
			return
		}
	}
}

const (
	entryCost = 40  // bytes that a row takes in a memtable beyond those in a batch
	entryRoom = 200 // bytes a row that must be free, or else Pebble flushes the memtable itself
)

// count counts a commit, and reports whether it is time for a flush: there is no room for another
// commit like it. If Pebble flushed by itself, the next flush would come soon after it, and there
// would be twice as many tables.
func (r *memtableFilter) count(bytes, rows int) bool {
	r.size += bytes + rows*entryCost
	return r.size+bytes+rows*entryRoom >= r.most
}

// next begins a generation. All before it is in tables when flushed is closed.
func (r *memtableFilter) next(flushed <-chan struct{}) {
	r.list[len(r.list)-1].flushed = flushed
	r.list = append(r.list, generation{names: newFilter(memtableLines)})
	r.size = 0
}

// filter is a Bloom filter of names. The bits of a name are in one line of the processor's cache. The
// number of lines is a power of two. With 20 names a line it is wrong about one name in a thousand.
type filter [][8]uint64

const (
	filterBits    = 4       // of a name
	memtableLines = 1 << 11 // a generation has about 40,000 URLs
)

func newFilter(lines int) filter { return make(filter, lines) }

func (f filter) add(n *name) {
	line, h := f.line(n)
	for range filterBits {
		line[h%8] |= 1 << (h >> 3 % 64)
		h >>= 9
	}
}

// has reports whether a name may have been added.
func (f filter) has(n *name) bool {
	line, h := f.line(n)
	for range filterBits {
		if line[h%8]&(1<<(h>>3%64)) == 0 {
			return false
		}
		h >>= 9
	}
	return true
}

// line returns a name's line, and a number for its bits there. Names are keyed hashes: nobody can
// choose them.
func (f filter) line(n *name) (*[8]uint64, uint64) {
	h := binary.LittleEndian.Uint64(n.hash[:]) ^ uint64(n.queue)*0x9E3779B97F4A7C15
	return &f[h&uint64(len(f)-1)], h >> (64 - filterBits*9)
}
