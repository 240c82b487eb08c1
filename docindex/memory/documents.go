package memory

import (
	"hash/maphash"
	"strconv"

	"urlserver/internal/container/arena"
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// record is a stored document: 56 bytes without pointers. Its text is in an arena. A record without
// urlLen is free.
type record struct {
	text     arena.Ref // the URL, then its extra if it has one
	queue    uint32
	created  uint32 // s since 1970
	seq      uint32 // number of its scheduling; breaks ties; compared by difference, so it may wrap
	priority int32
	sibling  uint32 // the next document of its queue, by arrival
	next     uint32 // scheduled: the next one in its run
	prev     uint32 // scheduled: the previous one in its run; of a run's first: its parent in the heap
	left     uint32 // first of a run: its child in the heap
	right    uint32 // first of a run: its child in the heap
	endedAt  uint32 // this and ended are an [embedded.Last]
	dueLow   uint32 // see due
	dueHigh  int16
	ended    uint16
	urlLen   uint16
	rank     uint8 // first of a run: steps to the nearest missing child
	flags    uint8
}

// due returns when a record is due, in s since 1970. The order of its queue begins with it.
func (r *record) due() int64 { return int64(r.dueHigh)<<32 | int64(r.dueLow) }

// maxDue is the largest due time that fits 48 bits, in four million years.
const maxDue = 1<<47 - 1

func (r *record) setDue(s int64) {
	s = max(-maxDue, min(s, maxDue))
	r.dueHigh, r.dueLow = int16(s>>32), uint32(s)
}

func (r *record) last() embedded.Last { return embedded.Last{At: r.endedAt, What: r.ended} }

func (r *record) setLast(l embedded.Last) { r.endedAt, r.ended = l.At, l.What }

// Flags of a record; the low two bits are its State.
const (
	stateMask   = 1<<2 - 1
	hasExtra    = 1 << 2
	hasID       = 1 << 3 // its DOC_ID is in the extra; otherwise it is the record's number
	viaFrontier = 1 << 4 // in transit: with a URL Frontier client
	isFirst     = 1 << 5 // of a run
	viaRemote   = 1 << 6 // in transit: with another daemon
	inBranch    = 1 << 7 // it waits in a branch of its queue
)

func (r *record) state() docindex.State { return docindex.State(r.flags & stateMask) }

func (r *record) setState(s docindex.State) { r.flags = r.flags&^stateMask | uint8(s) }

// documentTable holds the documents: their text, their records, and hash indexes of the records.
type documentTable struct {
	seed    maphash.Seed
	bytes   arena.Arena
	records slab.Slab[record]
	byURL   hashindex.Index // by queue and URL, whoever owns it; those with a unique by that, too
	byID    hashindex.Index // by DOC_ID, if that is in the extra
}

func newDocumentTable() *documentTable { return &documentTable{seed: maphash.MakeSeed()} }

// hash32 returns the part of a hash that a hash index takes.
func (s *documentTable) hash32(text []byte) uint32 { return uint32(maphash.Bytes(s.seed, text) >> 32) }

func (s *documentTable) hash(queue uint32, url []byte) uint32 {
	return s.hash32(url) ^ queue*0x9E3779B1
}

// find returns the record in a queue with the URL and owner of p, which has no unique, or 0. An
// update without an owner finds the first by [docindex.UpdateRank].
func (s *documentTable) find(queue uint32, p *docindex.Put, hash uint32) uint32 {
	owner := docindex.OwnerOf(p.Metadata)
	if p.Update && owner == nil {
		return s.likeliest(queue, p.URL, hash)
	}
	return s.byURL.Find(hash, func(id uint32) bool {
		r := s.records.At(id)
		return s.isOf(r, queue, p.URL) && string(s.extra(r).packed.Identity()) == string(owner)
	})
}

// uniqueHash returns the hash in byURL of a document that is known by unique.
func (s *documentTable) uniqueHash(unique []byte) uint32 { return s.hash32(unique) ^ 0x85EBCA6B }

// findUnique returns a record with the unique and owner of p for which isOfCrawl is true, or 0.
func (s *documentTable) findUnique(p *docindex.Put, isOfCrawl func(queue uint32) bool) uint32 {
	identity := string(docindex.IdentityOf(p))
	return s.byURL.Find(s.uniqueHash(p.Unique), func(id uint32) bool {
		r := s.records.At(id)
		return isOfCrawl(r.queue) && string(s.extra(r).packed.Identity()) == identity
	})
}

// dropPayload forgets the payload of a completed record.
func (s *documentTable) dropPayload(r *record) {
	if packed := s.extra(r).packed; len(packed.Payload()) > 0 {
		s.setPacked(r, packed.Lasting())
	}
}

// likeliest returns the record of a URL in a queue that is first by [docindex.UpdateRank], or 0.
func (s *documentTable) likeliest(queue uint32, url []byte, hash uint32) (best uint32) {
	rank := docindex.NoRank
	s.byURL.Find(hash, func(id uint32) bool {
		r := s.records.At(id)
		if !s.isOf(r, queue, url) {
			return false
		}
		if one := docindex.UpdateRank(r.state(), r.flags&viaFrontier != 0,
			s.extra(r).packed.Identity() != nil); one < rank {
			best, rank = id, one
		}
		return rank == 0
	})
	return best
}

func (s *documentTable) isOf(r *record, queue uint32, url []byte) bool {
	return r.queue == queue && string(s.url(r)) == string(url)
}

func (s *documentTable) url(r *record) []byte { return s.bytes.Bytes(r.text, int(r.urlLen)) }

// findID returns the record with a DOC_ID, or 0.
func (s *documentTable) findID(docID []byte) uint32 {
	if n, ok := number(docID); ok && s.hasNumber(n) {
		return n
	}
	if s.byID.Len() == 0 {
		return 0
	}
	return s.byID.Find(s.hash32(docID), func(id uint32) bool {
		return string(s.extra(s.records.At(id)).id) == string(docID)
	})
}

// hasNumber reports whether there is a record n whose DOC_ID is its number.
func (s *documentTable) hasNumber(n uint32) bool {
	if int(n) >= s.records.Cap() {
		return false
	}
	r := s.records.At(n)
	return r.urlLen > 0 && r.flags&hasID == 0
}

// number parses a DOC_ID that is a record's number.
func number(docID []byte) (n uint32, ok bool) {
	if len(docID) == 0 || len(docID) > len("4294967295") || docID[0] == '0' {
		return 0, false
	}
	sum := uint64(0)
	for _, c := range docID {
		if c < '0' || c > '9' {
			return 0, false
		}
		sum = sum*10 + uint64(c-'0')
	}
	return uint32(sum), sum < 1<<32
}

// docID appends the DOC_ID of a record.
func (s *documentTable) docID(dst []byte, id uint32) []byte {
	if r := s.records.At(id); r.flags&hasID != 0 {
		return append(dst, s.extra(r).id...)
	}
	return strconv.AppendUint(dst, uint64(id), 10)
}

// full reports whether the arena or the numbers may not suffice for another document.
func (s *documentTable) full() bool {
	return int64(s.bytes.Size()) >= maxBytes || s.records.Cap() >= maxRecords
}

const (
	maxBytes   = 32<<30 - 2<<20 // the bytes that an arena can address, without the current chunk and the next
	maxRecords = 1<<32 - 2
)

// add adds a record for p in a queue. No record has the same URL, owner or DOC_ID.
func (s *documentTable) add(queue uint32, p *docindex.Put, hash uint32) uint32 {
	id := s.records.New()
	r := s.records.At(id)
	x := extra{id: s.ownID(p.DocID, id), packed: docindex.Pack(p)}
	*r = record{queue: queue, urlLen: uint16(len(p.URL))}
	size := 0
	if !x.empty() {
		size = x.size()
		r.flags |= hasExtra
	}
	ref, room := s.bytes.New(len(p.URL) + size)
	copy(room, p.URL)
	if size > 0 {
		x.encode(room[len(p.URL):])
	}
	r.text = ref
	s.byURL.Add(hash, id)
	if len(p.Unique) > 0 {
		s.byURL.Add(s.uniqueHash(p.Unique), id)
	}
	if len(x.id) > 0 {
		r.flags |= hasID
		s.byID.Add(s.hash32(x.id), id)
	}
	return id
}

// drop removes a record that is in no list.
func (s *documentTable) drop(id uint32) {
	r := s.records.At(id)
	s.byURL.Remove(s.hash(r.queue, s.url(r)), id)
	if unique := s.extra(r).packed.Unique(); len(unique) > 0 {
		s.byURL.Remove(s.uniqueHash(unique), id)
	}
	if r.flags&hasID != 0 {
		s.byID.Remove(s.hash32(s.extra(r).id), id)
	}
	s.bytes.Free(r.text, s.size(r))
	s.records.Free(id)
}

// ownID returns the DOC_ID that has to be stored with a record: nothing if the record's number is
// its DOC_ID. If a client has given that number to another document, the next free number that
// equals it modulo 2^32 is used.
func (s *documentTable) ownID(asked []byte, id uint32) []byte {
	if m, ok := number(asked); ok && m == id {
		return nil
	}
	if len(asked) > 0 || s.byID.Len() == 0 {
		return asked
	}
	n := uint64(id)
	name := strconv.AppendUint(nil, n, 10)
	for s.taken(name) {
		n += 1 << 32
		name = strconv.AppendUint(name[:0], n, 10)
	}
	if n == uint64(id) {
		return nil
	}
	return name
}

// taken reports whether a client gave a DOC_ID.
func (s *documentTable) taken(docID []byte) bool {
	return s.byID.Find(s.hash32(docID), func(id uint32) bool {
		return string(s.extra(s.records.At(id)).id) == string(docID)
	}) != 0
}
