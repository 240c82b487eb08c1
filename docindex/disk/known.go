package disk

import (
	"encoding/binary"

	"urlserver/docindex"
)

// knownNames remembers names of documents that have a row, so that the put of a known URL need not
// read it: most links of a page are known. It holds whole names, so a name in it is known for
// certain. It forgets a name when another one needs its place. The zero value is not ready: use
// newKnownNames.
type knownNames []name // by placeOf; the zero name, which no document has: a free place

// knownPlaces is 20 MiB of names. A place takes memory when it is used first.
const knownPlaces = 1 << 20

func newKnownNames() knownNames { return make(knownNames, knownPlaces) }

// placeOf returns the place of a name. The documents of a URL in several queues have the same hash.
func (k knownNames) placeOf(n *name) *name {
	const odd = 0x9E3779B1 // its multiples spread over all numbers
	return &k[(binary.BigEndian.Uint32(n.hash[:])+n.queue*odd)%knownPlaces]
}

func (k knownNames) has(n *name) bool { return *k.placeOf(n) == *n }
func (k knownNames) add(n *name)      { *k.placeOf(n) = *n }

func (k knownNames) remove(n *name) {
	if p := k.placeOf(n); *p == *n {
		*p = name{}
	}
}

// stays reports whether a put certainly changes nothing, since its URL is known and it says nothing
// that would matter to a known one.
func (x *documents) stays(a *prefetched, p *docindex.Put) bool {
	if a.queue == 0 || p.Update || p.Sooner || len(p.DocID) > 0 || x.crawls.stats.Stopped() > 0 ||
		x.queues.at(a.queue).owners || !x.known.has(&a.name) {
		return false
	}
	_, _, expires := docindex.ExpiryOf(p)
	return !expires
}
