package disk

import (
	"encoding/binary"
	"math/bits"

	"urlserver/docindex"
)

// knownNames remembers names of documents that have a row, so that the put of a known URL need not
// read it: most links of a page are known. It has 8 MiB, and takes the memory that queues leave free,
// up to 64 GiB. It forgets a name when another one needs its place. The zero value is not ready: use
// newKnownNames.
//
// The table stores a mark in place of a name. Two short names of one queue never share both bucket
// and mark, and neither do the names of one URL in two queues. Any other two names share both with
// a probability of 2^-80. That is also the probability with which two URLs of one queue have the
// same name.
//
// Its size changes by a bucket at a time: it is a table with linear hashing (Litwin, VLDB 1980). Bucket
// i below split has been split in two, i and i + 1<<level.
//
// Each name has two buckets, and the table stores it in the one with more free places (Azar et al.,
// STOC 1994). So the table forgets hardly any name before 19 places in 20 are taken.
type knownNames struct {
	chunks [][]nameBucket
	level  uint
	split  int
	most   int         // buckets
	taken  int         // places
	ahead  []knownName // see next
	read   uint64      // see readNext
}

// nameBucket is two neighbouring lines of the processor's cache.
type nameBucket struct {
	marks [bucketMarks]uint64 // of names; 0: a free place
	// bits has one bit for each place, which is set if this bucket is the second one of the name
	// there. The other bits are those of forgotten names whose first bucket this is; see
	// forgottenBit.
	bits uint64
}

const (
	bucketBytes  = 128
	bucketMarks  = 15
	bucketBits   = 16 // low bits of a bucket's number that the mark does not contain
	fullFrom     = 31 // if this many of 32 places are taken, the table moves no names
	leastBuckets = 1 << bucketBits
	chunkBuckets = 1 << 13 // 1 MiB. A bucket takes memory when it is used first.
	maxBuckets   = 1 << 29
)

func newKnownNames() *knownNames {
	k := &knownNames{level: bucketBits, most: leastBuckets}
	for len(k.chunks) < leastBuckets/chunkBuckets {
		k.chunks = append(k.chunks, make([]nameBucket, chunkBuckets))
	}
	return k
}

func (k *knownNames) buckets() int { return 1<<k.level + k.split }

// allow sets how much memory the table may take beyond its 8 MiB. If it takes more, it forgets names.
func (k *knownNames) allow(bytes int64) {
	k.most = leastBuckets + int(min(max(bytes, 0)/bucketBytes, maxBuckets-leastBuckets))
	for k.buckets() > k.most {
		k.mergeLast()
	}
}

func (k *knownNames) bucket(i int) *nameBucket { return &k.chunks[i/chunkBuckets][i%chunkBuckets] }

// knownName is what the table knows of a name: its mark, and the low bucketBits bits of the number of its
// first bucket. These are called the end of the number.
type knownName struct {
	mark uint64
	end  uint64
}

// knownOf returns what the table knows of a name. Names are keyed hashes: nobody can choose them.
// The table never stores a name whose mark is 0.
func knownOf(n *name) knownName {
	const odd = 0x9E3779B97F4A7C15 // its multiples spread over all numbers
	spread := uint64(n.queue) * odd
	end := (uint64(binary.BigEndian.Uint16(n.hash[:])) + spread>>(64-bucketBits)) % leastBuckets
	mark := binary.BigEndian.Uint64(n.hash[urlLen-8:]) ^ spread
	if !n.isShort() {
		mark ^= binary.BigEndian.Uint64(n.hash[hashLen-8:]) * odd
	}
	return knownName{mark, end}
}

// at returns the number of the first or the second bucket of a name.
func (k *knownNames) at(n knownName, second bool) int {
	end, rest := n.end, n.mark
	if second {
		end, rest = n.otherEnd(), bits.RotateLeft64(n.mark, 32)
	}
	at := end | rest<<bucketBits
	i := at & (1<<k.level - 1)
	if i < uint64(k.split) {
		i = at & (2<<k.level - 1)
	}
	return int(i)
}

// otherEnd returns the end of the number of a name's second bucket. It is its own inverse: if n.end is of
// the second bucket, otherEnd is of the first.
func (n knownName) otherEnd() uint64 { return n.end ^ (n.mark>>14&(leastBuckets-1) | 1) }

// next announces a call of look with a name.
func (k *knownNames) next(of *name) { k.ahead = append(k.ahead, knownOf(of)) }

// readNext reads the buckets of the announced names, so that the processor has them in its cache
// when look needs them. It reads the buckets of several names at a time, where look would wait for
// each.
func (k *knownNames) readNext() {
	for _, n := range k.ahead {
		first, second := k.both(n)
		k.read += first.marks[0] + first.bits + second.marks[0] + second.bits
	}
	k.ahead = k.ahead[:0]
}

func (k *knownNames) both(n knownName) (first, second *nameBucket) {
	return k.bucket(k.at(n, false)), k.bucket(k.at(n, true))
}

// place returns the place of a mark in a bucket; negative: the bucket does not have it. second says
// whether the bucket has to be the second one of the mark's name, or the first.
func (b *nameBucket) place(mark uint64, second bool) int {
	for i := range b.marks {
		if b.marks[i] == mark && b.isSecond(i) == second {
			return i
		}
	}
	return -1
}

func (b *nameBucket) isSecond(i int) bool { return b.bits>>i&1 != 0 }

// free returns how many places are free, and one of them.
func (b *nameBucket) free() (n, place int) {
	for i, mark := range b.marks {
		if mark == 0 {
			n, place = n+1, i
		}
	}
	return n, place
}

func (b *nameBucket) set(i int, mark uint64, second bool) {
	b.marks[i] = mark
	if b.bits &^= 1 << i; second {
		b.bits |= 1 << i
	}
}

// look reports whether the table has a name. seen is false if the name was never added.
func (k *knownNames) look(of *name) (has, seen bool) {
	n := knownOf(of)
	if n.mark == 0 {
		return false, true
	}
	first, second := k.both(n)
	has = first.place(n.mark, false) >= 0 || second.place(n.mark, true) >= 0
	return has, has || first.bits&forgottenBit(n.mark) != 0
}

func (k *knownNames) add(of *name) {
	n := knownOf(of)
	first, second := k.both(n)
	if n.mark == 0 || first.place(n.mark, false) >= 0 || second.place(n.mark, true) >= 0 {
		return
	}
	if k.addFree(n) {
		return
	}
	if k.buckets() < k.most {
		k.splitNext()
	}
	if k.addFree(n) || k.mayHaveRoom() && k.makeRoom(n) && k.addFree(n) {
		return
	}
	b, i := k.at(n, false), int(n.mark>>32%bucketMarks)
	k.forget(b, i)
	k.bucket(b).set(i, n.mark, false)
	k.taken++
}

// mayHaveRoom reports whether makeRoom is worth a try. It reads up to 30 buckets, and where nearly all places
// are taken it finds nothing in them.
func (k *knownNames) mayHaveRoom() bool { return k.taken*32 < k.buckets()*bucketMarks*fullFrom }

// makeRoom moves a mark from a bucket of a name to the mark's other bucket, if one has room there (Pagh and
// Rodler, Cuckoo Hashing, 2001).
func (k *knownNames) makeRoom(n knownName) bool {
	for _, at := range [2]int{k.at(n, false), k.at(n, true)} {
		b := k.bucket(at)
		for i, mark := range b.marks {
			second := !b.isSecond(i)
			other := k.bucket(k.at(k.held(at, i), second))
			if free, place := other.free(); free > 0 {
				other.set(place, mark, second)
				b.marks[i] = 0
				return true
			}
		}
	}
	return false
}

// addFree adds a name if one of its buckets has a free place.
func (k *knownNames) addFree(n knownName) bool {
	first, second := k.both(n)
	some, i := first.free()
	more, j := second.free()
	switch {
	case some == 0 && more == 0:
		return false
	case some >= more:
		first.set(i, n.mark, false)
	default:
		second.set(j, n.mark, true)
	}
	k.taken++
	return true
}

// held returns what the table knows of the name at a place of a bucket.
func (k *knownNames) held(bucket, i int) knownName {
	b := k.bucket(bucket)
	n := knownName{b.marks[i], uint64(bucket) % leastBuckets}
	if b.isSecond(i) {
		n.end = n.otherEnd()
	}
	return n
}

// forget frees a place of a bucket.
func (k *knownNames) forget(bucket, i int) {
	n := k.held(bucket, i)
	k.bucket(k.at(n, false)).bits |= forgottenBit(n.mark)
	k.bucket(bucket).marks[i] = 0
	k.taken--
}

// forgottenBit returns the bit of a mark in nameBucket.bits. It depends on none of the mark's bits
// that choose the bucket.
func forgottenBit(mark uint64) uint64 {
	return 1 << (bucketMarks + mark>>(64-16)*(64-bucketMarks)>>16)
}

// remove removes a name. From then on look may report that the name was never added.
func (k *knownNames) remove(of *name) {
	n := knownOf(of)
	first, second := k.both(n)
	if at := first.place(n.mark, false); at >= 0 {
		first.marks[at] = 0
		k.taken--
	}
	if at := second.place(n.mark, true); at >= 0 {
		second.marks[at] = 0
		k.taken--
	}
}

// splitNext adds a bucket. It has those marks of an older bucket whose next bit is set.
func (k *knownNames) splitNext() {
	if k.buckets() == len(k.chunks)*chunkBuckets {
		k.chunks = append(k.chunks, make([]nameBucket, chunkBuckets))
	}
	from, to := k.bucket(k.split), k.bucket(k.buckets())
	to.bits = from.bits
	at := k.split
	if k.split++; k.split == 1<<k.level {
		k.level, k.split = k.level+1, 0
	}
	for i, mark := range from.marks {
		if mark != 0 && k.at(k.held(at, i), from.isSecond(i)) != at {
			from.marks[i], to.marks[i] = 0, mark
		}
	}
}

// mergeLast is the reverse of splitNext. It forgets the marks for which the older bucket has no
// place.
func (k *knownNames) mergeLast() {
	if k.split == 0 {
		k.level--
		k.split = 1 << k.level
	}
	k.split--
	last := k.buckets()
	from, to := k.bucket(last), k.bucket(k.split)
	to.bits |= from.bits &^ (1<<bucketMarks - 1)
	for i, mark := range from.marks {
		if mark == 0 {
			continue
		}
		if n, free := to.free(); n > 0 {
			to.set(free, mark, from.isSecond(i))
		} else {
			k.forget(last, i)
		}
	}
	*from = nameBucket{}
	if last := len(k.chunks) - 1; k.buckets() <= (last-1)*chunkBuckets { // keep one empty chunk for the next split
		k.chunks[last] = nil
		k.chunks = k.chunks[:last]
	}
}

// isPlain reports whether a put changes nothing if its URL is known: the put is no update, does not
// bring the document forward, and has neither a DOC_ID nor an expiry; no crawl is stopped; and no
// document of the queue has an owner.
func (x *documents) isPlain(queue uint32, p *docindex.Put) bool {
	if queue == 0 || p.Update || p.Sooner || len(p.DocID) > 0 || x.crawls.stats.Stopped() > 0 ||
		x.queues.at(queue).owners {
		return false
	}
	_, _, expires := docindex.ExpiryOf(p)
	return !expires
}
