// Package hashtable finds numbered records by a key that lies elsewhere: an
// open-addressing hash table of record numbers, six bytes a place, without
// pointers. Its shards grow one at a time, so that no insertion stops the
// world for longer than one shard takes.
package hashtable

const (
	shardBits = 10
	shards    = 1 << shardBits
	minPlaces = 8
)

// Table maps 32-bit hashes to non-zero record numbers; the caller compares keys. The zero
// value is not ready: use New. Not safe for concurrent use.
type Table struct {
	shards []shard
	hashOf func(id uint32) uint32
	live   int
}

// shard probes linearly, and of two entries that want a place the one further from its home has
// it ("Robin Hood hashing", P. Celis, 1986). So a search ends soon, also one in vain with seven of
// eight places taken; and that a place knows the steps from its entry's home saves a look at
// the records of all that move.
type shard struct {
	marks []mark
	ids   []uint32
	live  int
}

// mark is what a place tells of its entry: in the high byte one more than the steps from its home,
// in the low one the hash's low byte. 0: the place is free.
type mark uint16

const (
	oneStep mark = 1 << 8
	farAway mark = 0xff // in the high byte: so many or more
)

// firstMark is the mark of an entry in its home.
func firstMark(hash uint32) mark { return oneStep | mark(uint8(hash)) }

// further is the mark of the same entry one step further.
func (m mark) further() mark {
	if m>>8 == farAway {
		return m
	}
	return m + oneStep
}

// New returns an empty table. hashOf gives the hash of a record that is in the
// table again; it is called while a shard grows, and where very many hashes are alike.
func New(hashOf func(id uint32) uint32) *Table {
	return &Table{shards: make([]shard, shards), hashOf: hashOf}
}

// Len is the number of entries.
func (t *Table) Len() int { return t.live }

// Find returns the entry under hash for which same answers true, or 0.
func (t *Table) Find(hash uint32, same func(id uint32) bool) uint32 {
	s := &t.shards[hash>>(32-shardBits)]
	if s.live == 0 {
		return 0
	}
	i, want := s.home(hash), firstMark(hash)
	for s.marks[i]>>8 >= want>>8 { // else whom we look for would have been here
		if s.marks[i] == want && same(s.ids[i]) {
			return s.ids[i]
		}
		i, want = s.after(i), want.further()
	}
	return 0
}

// Add enters id under hash. The caller has made sure that no entry has its key.
func (t *Table) Add(hash uint32, id uint32) {
	s := &t.shards[hash>>(32-shardBits)]
	if s.live*8 >= len(s.ids)*7 {
		t.grow(s)
	}
	t.add(s, hash, id)
	t.live++
}

// Remove takes id, which was added under hash, out again.
func (t *Table) Remove(hash uint32, id uint32) {
	s := &t.shards[hash>>(32-shardBits)]
	i := s.home(hash)
	for want := firstMark(hash); s.marks[i] != want || s.ids[i] != id; want = want.further() {
		if s.marks[i] == 0 {
			panic("table: a record is removed that is not in the table")
		}
		i = s.after(i)
	}
	t.closeGap(s, i)
	s.live--
	t.live--
}

// closeGap moves the entries behind a place one step towards their homes, so that no tombstone
// is needed.
func (t *Table) closeGap(s *shard, gap int) {
	next := s.after(gap)
	for s.marks[next] >= 2*oneStep { // not free, and not in its home
		m := s.marks[next]
		if m>>8 < farAway || t.steps(s, next)+1 == int(farAway) {
			m -= oneStep
		}
		s.marks[gap], s.ids[gap] = m, s.ids[next]
		gap, next = next, s.after(next)
	}
	s.marks[gap], s.ids[gap] = 0, 0
}

func (t *Table) grow(s *shard) {
	old := s.ids
	n := max(minPlaces, len(old)+len(old)/2)
	*s = shard{marks: make([]mark, n), ids: make([]uint32, n)}
	for _, id := range old {
		if id != 0 {
			t.add(s, t.hashOf(id), id)
		}
	}
}

func (t *Table) add(s *shard, hash uint32, id uint32) {
	i, m := s.home(hash), firstMark(hash)
	for s.marks[i] != 0 {
		if s.marks[i]>>8 < m>>8 || m>>8 == farAway && t.steps(s, i) < s.steps(t.hashOf(id), i) {
			s.marks[i], m = m, s.marks[i]
			s.ids[i], id = id, s.ids[i]
		}
		i, m = s.after(i), m.further()
	}
	s.marks[i], s.ids[i] = m, id
	s.live++
}

// steps is how far from its home the entry at a place is.
func (t *Table) steps(s *shard, i int) int {
	if far := s.marks[i] >> 8; far < farAway {
		return int(far) - 1
	}
	return s.steps(t.hashOf(s.ids[i]), i)
}

// steps is how far place i is from the home of a hash.
func (s *shard) steps(hash uint32, i int) int {
	home := s.home(hash)
	if i < home {
		i += len(s.ids)
	}
	return i - home
}

// home spreads the bits below the shard's over the places, whose number is no
// power of two.
func (s *shard) home(hash uint32) int {
	return int(uint64(hash<<shardBits) * uint64(len(s.ids)) >> 32)
}

func (s *shard) after(i int) int {
	if i++; i == len(s.ids) {
		return 0
	}
	return i
}
