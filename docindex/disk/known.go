package disk

import (
	"encoding/binary"
	"slices"

	"urlserver/docindex"
)

// knownNames remembers names of documents that have a row, so that the put of a known URL need not
// read it: most links of a page are known. It has 8 MiB, and takes the memory that queues leave free,
// up to 64 GiB. It forgets a name when another one needs its place. The zero value is not ready: use
// newKnownNames.
//
// It has no more of a name than a mark. Two short names of one queue never have line and mark in
// common, and neither have the names of a URL in two queues. Any other two names have with a
// probability of 2^-80, as any two URLs of one queue have the same name.
//
// Its size changes by a line at a time: it is a table with linear hashing (Litwin, VLDB 1980). Line i
// below split has been split in two, i and i + 1<<level.
type knownNames struct {
	chunks [][]nameLine
	level  uint
	split  int
	most   int // lines
}

// nameLine has marks of names; 0: a free place. It is one line of the processor's cache.
type nameLine [8]uint64

const (
	lineBytes  = 64
	lineBits   = 17 // of a line's number are not in the mark
	leastLines = 1 << lineBits
	chunkLines = 1 << 14 // 1 MiB. A line takes memory when it is used first.
	maxLines   = 1 << 30
	// overSplits is how many lines are split when a line has no free place. With 2 the table keeps nine
	// names in ten, in 14 bytes each.
	overSplits = 2
)

func newKnownNames() *knownNames {
	k := &knownNames{level: lineBits, most: leastLines}
	for len(k.chunks) < leastLines/chunkLines {
		k.chunks = append(k.chunks, make([]nameLine, chunkLines))
	}
	return k
}

func (k *knownNames) lines() int { return 1<<k.level + k.split }

// allow sets how much memory the table may take beyond its 8 MiB. If it takes more, it forgets names.
func (k *knownNames) allow(bytes int64) {
	k.most = leastLines + int(min(max(bytes, 0)/lineBytes, maxLines-leastLines))
	for k.lines() > k.most {
		k.mergeLast()
	}
}

func (k *knownNames) line(i int) *nameLine { return &k.chunks[i/chunkLines][i%chunkLines] }

// lineOf returns the line and the mark of a name. Names are keyed hashes: nobody can choose them. A
// name with 0 as mark is never held.
func (k *knownNames) lineOf(n *name) (line *nameLine, mark uint64) {
	const odd = 0x9E3779B97F4A7C15 // its multiples spread over all numbers
	spread := uint64(n.queue) * odd
	at := (uint64(binary.BigEndian.Uint32(n.hash[:])>>(32-lineBits)) + spread>>(64-lineBits)) % leastLines
	mark = binary.BigEndian.Uint64(n.hash[urlLen-8:]) ^ spread
	if !n.isShort() {
		mark ^= binary.BigEndian.Uint64(n.hash[hashLen-8:]) * odd
	}
	at |= mark << lineBits
	i := at & (1<<k.level - 1)
	if i < uint64(k.split) {
		i = at & (2<<k.level - 1)
	}
	return k.line(int(i)), mark
}

func (k *knownNames) has(n *name) bool {
	line, mark := k.lineOf(n)
	return mark != 0 && slices.Contains(line[:], mark)
}

func (k *knownNames) add(n *name) {
	line, mark := k.lineOf(n)
	if slices.Contains(line[:], mark) {
		return
	}
	if slices.Contains(line[:], 0) {
		line.add(mark)
		return
	}
	for range overSplits {
		if k.lines() < k.most {
			k.splitNext()
		}
	}
	line, _ = k.lineOf(n)
	line.add(mark)
}

// add adds a mark, in the place of another one if none is free.
func (l *nameLine) add(mark uint64) {
	at := slices.Index(l[:], 0)
	if at < 0 {
		at = int(mark>>32) % len(l)
	}
	l[at] = mark
}

func (k *knownNames) remove(n *name) {
	line, mark := k.lineOf(n)
	if at := slices.Index(line[:], mark); at >= 0 {
		line[at] = 0
	}
}

// splitNext adds a line. It has those marks of an older line whose next bit is set.
func (k *knownNames) splitNext() {
	if k.lines() == len(k.chunks)*chunkLines {
		k.chunks = append(k.chunks, make([]nameLine, chunkLines))
	}
	from, to := k.line(k.split), k.line(k.lines())
	for i, mark := range from {
		if mark>>(k.level-lineBits)&1 != 0 {
			from[i], to[i] = 0, mark
		}
	}
	if k.split++; k.split == 1<<k.level {
		k.level, k.split = k.level+1, 0
	}
}

// mergeLast is the reverse of splitNext. It forgets the marks that have no place.
func (k *knownNames) mergeLast() {
	if k.split == 0 {
		k.level--
		k.split = 1 << k.level
	}
	k.split--
	from, to := k.line(k.lines()), k.line(k.split)
	for i, mark := range from {
		if from[i] = 0; mark != 0 {
			if free := slices.Index(to[:], 0); free >= 0 {
				to[free] = mark
			}
		}
	}
	if last := len(k.chunks) - 1; k.lines() <= (last-1)*chunkLines { // one empty chunk is kept for the next split
		k.chunks[last] = nil
		k.chunks = k.chunks[:last]
	}
}

// isPlain reports whether a put changes nothing if its URL is known, since it says nothing that
// would matter then.
func (x *documents) isPlain(queue uint32, p *docindex.Put) bool {
	if queue == 0 || p.Update || p.Sooner || len(p.DocID) > 0 || x.crawls.stats.Stopped() > 0 ||
		x.queues.at(queue).owners {
		return false
	}
	_, _, expires := docindex.ExpiryOf(p)
	return !expires
}
