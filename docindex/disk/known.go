package disk

import (
	"encoding/binary"
	"slices"

	"urlserver/docindex"
)

// knownNames remembers names of documents that have a row, so that the put of a known URL need not
// read it: most links of a page are known. It forgets a name when another one needs its place. The
// zero value is not ready: use newKnownNames.
//
// It has no more of a name than a mark. Two short names of one queue never have line and mark in
// common, and neither have the names of a URL in two queues. Two other names have with a probability
// of 2^-80, as two URLs of one queue have the same name.
type knownNames [][knownLine]uint64 // marks by lineOf; 0: a free place

// There are 8 MiB of marks. A line takes memory when it is used first.
const (
	knownLine  = 8 // one line of the processor's cache
	knownLines = 1 << 17
)

func newKnownNames() knownNames { return make(knownNames, knownLines) }

// lineOf returns the line and the mark of a name. Names are keyed hashes: nobody can choose them. A
// name with 0 as mark is never held.
func (k knownNames) lineOf(n *name) (line *[knownLine]uint64, mark uint64) {
	const odd = 0x9E3779B97F4A7C15 // its multiples spread over all numbers
	spread := uint64(n.queue) * odd
	at := uint64(binary.BigEndian.Uint32(n.hash[:])>>15) + spread>>47 // 17 bits of each
	mark = binary.BigEndian.Uint64(n.hash[urlLen-8:]) ^ spread
	if !n.isShort() {
		mark ^= binary.BigEndian.Uint64(n.hash[hashLen-8:]) * odd
	}
	return &k[at%knownLines], mark
}

func (k knownNames) has(n *name) bool {
	line, mark := k.lineOf(n)
	return mark != 0 && slices.Contains(line[:], mark)
}

func (k knownNames) add(n *name) {
	line, mark := k.lineOf(n)
	if slices.Contains(line[:], mark) {
		return
	}
	at := slices.Index(line[:], 0)
	if at < 0 {
		at = int(mark % knownLine)
	}
	line[at] = mark
}

func (k knownNames) remove(n *name) {
	line, mark := k.lineOf(n)
	if at := slices.Index(line[:], mark); at >= 0 {
		line[at] = 0
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
