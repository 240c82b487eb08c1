// Package hashindex finds numbered records by the hash of a key that is stored elsewhere.
package hashindex

// EntryBytes is the average memory of an entry, including free places.
const EntryBytes = 10

// Index is an open-addressing hash table of record numbers: eight bytes a place, no pointers. Each
// entry keeps its whole hash, so growing reads no record. The shards grow one at a time, and not
// all at the same length, so that no single Add takes long.
//
// The zero value is empty and ready to use. An Index is not safe for concurrent use.
type Index struct {
	shards [1 << shardBits]shard
	length int
}

const shardBits = 8

// A shard's load goes from four fifths to nine tenths: it grows by an eighth. Starting lengths from
// minPlaces to minPlaces+7 spread the growth steps of the shards.
const minPlaces = 16

// overflow is by how many places a shard is longer than the range of home.
const overflow = 8

// shard probes linearly and keeps its entries in the order of their hashes ("ordered hash table",
// O. Amble and D. E. Knuth, 1974). So a search for an absent entry ends as soon as one that is
// present, also in a shard that is nearly full, and growing goes through memory from front to back.
// Between the home of an entry and its place there is no free place. An entry beyond the last home
// is in the overflow; places do not wrap around.
type shard struct {
	entries []entry // 0: a free place
	homes   int
	length  int
}

// entry is a hash in the high half and the number of a record, which is not 0, in the low half.
type entry uint64

func newEntry(hash, id uint32) entry { return entry(hash)<<32 | entry(id) }
func (e entry) hash() uint32         { return uint32(e >> 32) }
func (e entry) id() uint32           { return uint32(e) }

// Find returns the number that was added under hash and for which same returns true, or 0.
func (x *Index) Find(hash uint32, same func(id uint32) bool) uint32 {
	s := &x.shards[hash>>(32-shardBits)]
	for i := s.home(hash); i < len(s.entries); i++ {
		e := s.entries[i]
		switch {
		case e == 0 || e.hash() > hash:
			return 0
		case e.hash() == hash && same(e.id()):
			return e.id()
		}
	}
	return 0
}

// Add adds id, which is not 0, under hash. The caller has checked that Find does not find it.
func (x *Index) Add(hash, id uint32) {
	n := hash >> (32 - shardBits)
	s := &x.shards[n]
	if s.length*10 >= s.homes*9 {
		s.grow(max(minPlaces+int(n%8), s.homes+s.homes/8))
	}
	s.insert(newEntry(hash, id))
	x.length++
}

// Remove removes id, which was added under hash. It panics if it is not there.
func (x *Index) Remove(hash, id uint32) {
	x.shards[hash>>(32-shardBits)].remove(newEntry(hash, id))
	x.length--
}

// Read reads what Find and Remove begin with, so that the processor has it in its cache by then. The
// result means nothing.
func (x *Index) Read(hash uint32) uint32 {
	s := &x.shards[hash>>(32-shardBits)]
	if s.homes == 0 {
		return 0
	}
	return s.entries[s.home(hash)].id()
}

// Len returns the number of entries.
func (x *Index) Len() int { return x.length }

// grow moves the entries to a shard with n homes. Each goes to its home, or behind the one before
// it.
func (s *shard) grow(n int) {
	old := s.entries
	s.entries, s.homes = make([]entry, n+overflow), n
	place := -1
	for _, e := range old {
		if e == 0 {
			continue
		}
		place = max(place+1, s.home(e.hash()))
		if place == len(s.entries) {
			s.extend()
		}
		s.entries[place] = e
	}
}

// extend lengthens the overflow.
func (s *shard) extend() {
	longer := make([]entry, len(s.entries)+overflow)
	copy(longer, s.entries)
	s.entries = longer
}

// insert moves the entries from e's place to the next free place one place further.
func (s *shard) insert(e entry) {
	place := s.home(e.hash())
	for place < len(s.entries) && s.entries[place] != 0 && s.entries[place].hash() <= e.hash() {
		place++
	}
	free := place
	for free < len(s.entries) && s.entries[free] != 0 {
		free++
	}
	if free == len(s.entries) {
		s.extend()
	}
	copy(s.entries[place+1:free+1], s.entries[place:free])
	s.entries[place] = e
	s.length++
}

// remove moves the entries behind e that are not in their homes one place back.
func (s *shard) remove(e entry) {
	place := s.home(e.hash())
	for place < len(s.entries) && s.entries[place] != e {
		if s.entries[place] == 0 || s.entries[place].hash() > e.hash() {
			panic("hashindex: Remove of a record that was not added")
		}
		place++
	}
	end := place + 1
	for end < len(s.entries) && s.entries[end] != 0 && s.home(s.entries[end].hash()) < end {
		end++
	}
	copy(s.entries[place:], s.entries[place+1:end])
	s.entries[end-1] = 0
	s.length--
}

// home maps the bits of a hash below the shard's to a place. It rises with the hash. The number of
// homes need not be a power of two.
func (s *shard) home(hash uint32) int {
	return int(uint64(hash<<shardBits) * uint64(s.homes) >> 32)
}
