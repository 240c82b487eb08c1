// Package finder finds numbered things by a hash of their key, next to no memory beside them.
package finder

// EntryBytes is what an entry takes, about, with the places left free.
const EntryBytes = 13

// Finder is the table: open addressing, eight bytes a place, without pointers. Each
// entry keeps its hash, so that growing looks at nothing else, and hashes stand in their order, so that growing
// reads and writes memory from front to back. It grows a shard at a time, and not all shards at the same time: no
// addition takes long. The zero value is ready. Not safe for concurrent use.
type Finder struct {
	shards [1 << shardBits]places
	live   int
}

const shardBits = 8

// firstPlaces is how many a shard begins with. All then grow by half, so beginnings between 16 and
// one and a half times that keep their growing apart.
func firstPlaces(shard uint32) int { return 16 + int(shard%8) }

// places is a shard; a free place is 0. It is never full, so that probing ends.
type places struct {
	entries []entry
	live    int
}

// entry is a hash, and the number of the thing in the low half. Numbers are not 0.
type entry uint64

// Find returns the number under hash for which same answers true, or 0.
func (f *Finder) Find(hash uint32, same func(id uint32) bool) uint32 {
	p := &f.shards[hash>>(32-shardBits)]
	if p.live == 0 {
		return 0
	}
	for i := p.home(hash); p.entries[i] != 0; i = p.after(i) {
		if e := p.entries[i]; uint32(e>>32) == hash && same(uint32(e)) {
			return uint32(e)
		}
	}
	return 0
}

// Add enters id under hash; Find does not find it yet.
func (f *Finder) Add(hash, id uint32) {
	shard := hash >> (32 - shardBits)
	p := &f.shards[shard]
	if p.live*4 >= len(p.entries)*3 {
		p.grow(max(firstPlaces(shard), len(p.entries)+len(p.entries)/2))
	}
	p.put(entry(hash)<<32 | entry(id))
	p.live++
	f.live++
}

// Remove takes out id, which was added under hash.
func (f *Finder) Remove(hash, id uint32) {
	p := &f.shards[hash>>(32-shardBits)]
	e := entry(hash)<<32 | entry(id)
	i := p.home(hash)
	for p.entries[i] != e {
		if p.entries[i] == 0 {
			panic("finder: what is removed was not added")
		}
		i = p.after(i)
	}
	p.close(i)
	p.live--
	f.live--
}

// close moves later entries forward over a gap, so that no probe ends too soon (Knuth, The Art of Computer
// Programming 3, 6.4, algorithm R).
func (p *places) close(gap int) {
	for i := p.after(gap); p.entries[i] != 0; i = p.after(i) {
		home := p.home(uint32(p.entries[i] >> 32))
		if p.distance(home, i) >= p.distance(gap, i) {
			p.entries[gap] = p.entries[i]
			gap = i
		}
	}
	p.entries[gap] = 0
}

// distance is the number of steps from place a to place b.
func (p *places) distance(a, b int) int {
	if b >= a {
		return b - a
	}
	return b - a + len(p.entries)
}

// Len is how many are in it.
func (f *Finder) Len() int { return f.live }

func (p *places) grow(n int) {
	old := p.entries
	p.entries = make([]entry, n)
	for _, e := range old {
		if e != 0 {
			p.put(e)
		}
	}
}

func (p *places) put(e entry) {
	i := p.home(uint32(e >> 32))
	for p.entries[i] != 0 {
		i = p.after(i)
	}
	p.entries[i] = e
}

// home spreads the bits that did not choose the shard over the places.
func (p *places) home(hash uint32) int {
	return int(uint64(hash<<shardBits) * uint64(len(p.entries)) >> 32)
}

func (p *places) after(i int) int {
	if i++; i < len(p.entries) {
		return i
	}
	return 0
}
