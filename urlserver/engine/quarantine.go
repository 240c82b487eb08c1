package engine

import (
	"hash/maphash"
	"time"

	"urlserver/hostslots"
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"
)

// quarantine remembers which documents ended lately, by a 64-bit hash of their IDs. A false match
// only postpones a document until the index offers it again.
//
// It may have millions of entries, so the processor waits for memory at each look-up. The latest entries
// are kept apart and added to the hash index together. The processor then waits once for all of them, as
// with [hostslots.ReadAhead].
type quarantine struct {
	seed   maphash.Seed
	ended  slab.Slab[ended]
	byHash hashindex.Index // of those that are not in recent
	recent []uint32        // the latest, the oldest first; fewer than hostslots.ReadAhead
	oldest uint32
	newest uint32
	read   uint32 // a sum over records read ahead, so that the compiler keeps the reads
}

type ended struct {
	hash uint64
	at   time.Duration
	next uint32
}

func newQuarantine() *quarantine {
	return &quarantine{seed: maphash.MakeSeed()}
}

func (q *quarantine) find(hash uint64) uint32 {
	for _, n := range q.recent {
		if q.ended.At(n).hash == hash {
			return n
		}
	}
	return q.byHash.Find(uint32(hash), func(n uint32) bool { return q.ended.At(n).hash == hash })
}

// readAhead reads what has needs of a document, so that the processor has it in its cache by then.
func (q *quarantine) readAhead(id []byte) {
	if q.byHash.Len() > 0 {
		q.read += q.byHash.Read(uint32(maphash.Bytes(q.seed, id)))
	}
}

// has reports whether the document ended after the given moment.
func (q *quarantine) has(id []byte, since time.Duration) bool {
	q.drop(since)
	return q.find(maphash.Bytes(q.seed, id)) != 0
}

// add notes that a document has ended. One that is there already has two entries: the later one
// counts.
func (q *quarantine) add(id []byte, now time.Duration) {
	hash := maphash.Bytes(q.seed, id)
	n := q.ended.New()
	*q.ended.At(n) = ended{hash: hash, at: now}
	if q.recent = append(q.recent, n); len(q.recent) == hostslots.ReadAhead {
		q.indexRecent()
	}
	if q.newest != 0 {
		q.ended.At(q.newest).next = n
	} else {
		q.oldest = n
	}
	q.newest = n
}

// indexRecent adds the latest entries to the hash index.
func (q *quarantine) indexRecent() {
	for _, n := range q.recent {
		q.read += q.byHash.Read(uint32(q.ended.At(n).hash))
	}
	for _, n := range q.recent {
		q.byHash.Add(uint32(q.ended.At(n).hash), n)
	}
	q.recent = q.recent[:0]
}

// drop forgets what ended at or before the given moment.
func (q *quarantine) drop(since time.Duration) {
	for q.oldest != 0 {
		n := q.oldest
		d := *q.ended.At(n)
		if d.at > since {
			return
		}
		if len(q.recent) > 0 && q.recent[0] == n {
			q.indexRecent()
		}
		q.byHash.Remove(uint32(d.hash), n)
		q.oldest = d.next
		if d.next == 0 {
			q.newest = 0
		}
		q.ended.Free(n)
	}
}
