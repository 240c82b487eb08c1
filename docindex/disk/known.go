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
// It has no more of a name than a mark. Two short names of one queue never have bucket and mark in
// common, and neither have the names of a URL in two queues. Any other two names have with a
// probability of 2^-80, as any two URLs of one queue have the same name.
//
// Its size changes by a bucket at a time: it is a table with linear hashing (Litwin, VLDB 1980). Bucket
// i below split has been split in two, i and i + 1<<level.
type knownNames struct {
	chunks [][]nameBucket
	level  uint
	split  int
	most   int // buckets
}

// nameBucket is two neighbouring lines of the processor's cache.
type nameBucket struct {
	marks     [15]uint64 // of names; 0: a free place
	forgotten uint64     // has a bit for each mark that had no place, see forgottenBit
}

const (
	bucketBytes  = 128
	bucketBits   = 16 // of a bucket's number are not in the mark
	leastBuckets = 1 << bucketBits
	chunkBuckets = 1 << 13 // 1 MiB. A bucket takes memory when it is used first.
	maxBuckets   = 1 << 29
	// overSplits is how many buckets are split when a bucket has no free place. With 2 the table keeps
	// 19 names in 20, in 12 bytes each.
	overSplits = 2
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

// bucketOf returns the bucket and the mark of a name. Names are keyed hashes: nobody can choose them. A
// name with 0 as mark is never held.
func (k *knownNames) bucketOf(n *name) (b *nameBucket, mark uint64) {
	const odd = 0x9E3779B97F4A7C15 // its multiples spread over all numbers
	spread := uint64(n.queue) * odd
	at := (uint64(binary.BigEndian.Uint16(n.hash[:])) + spread>>(64-bucketBits)) % leastBuckets
	mark = binary.BigEndian.Uint64(n.hash[urlLen-8:]) ^ spread
	if !n.isShort() {
		mark ^= binary.BigEndian.Uint64(n.hash[hashLen-8:]) * odd
	}
	at |= mark << bucketBits
	i := at & (1<<k.level - 1)
	if i < uint64(k.split) {
		i = at & (2<<k.level - 1)
	}
	return k.bucket(int(i)), mark
}

// look reports whether the table has a name. seen is false if the name was never added.
func (k *knownNames) look(n *name) (has, seen bool) {
	b, mark := k.bucketOf(n)
	if mark == 0 {
		return false, true
	}
	has = slices.Contains(b.marks[:], mark)
	return has, has || b.forgotten&forgottenBit(mark) != 0
}

func (k *knownNames) add(n *name) {
	b, mark := k.bucketOf(n)
	if slices.Contains(b.marks[:], mark) {
		return
	}
	if !slices.Contains(b.marks[:], 0) {
		for range overSplits {
			if k.buckets() < k.most {
				k.splitNext()
			}
		}
		b, _ = k.bucketOf(n)
	}
	b.add(mark)
}

// add adds a mark, in the place of another one if none is free.
func (b *nameBucket) add(mark uint64) {
	at := slices.Index(b.marks[:], 0)
	if at < 0 {
		at = int(mark>>32) % len(b.marks)
		b.forgotten |= forgottenBit(b.marks[at])
	}
	b.marks[at] = mark
}

// forgottenBit returns the bit of a mark in nameBucket.forgotten. It depends on none of the mark's bits
// that choose the bucket.
func forgottenBit(mark uint64) uint64 { return 1 << (mark >> (64 - 6)) }

// remove removes a name. Whether it was added is of no interest from then on.
func (k *knownNames) remove(n *name) {
	b, mark := k.bucketOf(n)
	if at := slices.Index(b.marks[:], mark); at >= 0 {
		b.marks[at] = 0
	}
}

// splitNext adds a bucket. It has those marks of an older bucket whose next bit is set.
func (k *knownNames) splitNext() {
	if k.buckets() == len(k.chunks)*chunkBuckets {
		k.chunks = append(k.chunks, make([]nameBucket, chunkBuckets))
	}
	from, to := k.bucket(k.split), k.bucket(k.buckets())
	to.forgotten = from.forgotten
	for i, mark := range from.marks {
		if mark>>(k.level-bucketBits)&1 != 0 {
			from.marks[i], to.marks[i] = 0, mark
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
	from, to := k.bucket(k.buckets()), k.bucket(k.split)
	to.forgotten |= from.forgotten
	for _, mark := range from.marks {
		if mark == 0 {
			continue
		}
		if free := slices.Index(to.marks[:], 0); free >= 0 {
			to.marks[free] = mark
		} else {
			to.forgotten |= forgottenBit(mark)
		}
	}
	*from = nameBucket{}
	if last := len(k.chunks) - 1; k.buckets() <= (last-1)*chunkBuckets { // one empty chunk is kept for the next split
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
