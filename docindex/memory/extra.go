package memory

import (
	"encoding/binary"

	"urlserver/internal/container/arena"
	"urlserver/protocol"

	"urlserver/docindex"
)

// extra has the parts that only some documents have.
type extra struct {
	id     []byte
	packed docindex.Packed
}

// extraHead is the size of the lengths of an extra's parts.
const extraHead = 1 + 2

// The longest document fits one string of the arena.
const _ = uint(arena.MaxLen - protocol.MaxURL - extraHead - protocol.MaxDocID - docindex.MaxExtra - docindex.OwnerRoom -
	docindex.MaxPacked)

func (x *extra) empty() bool {
	return len(x.id)+len(x.packed) == 0
}

func (x *extra) size() int {
	return extraHead + len(x.id) + len(x.packed)
}

func (x *extra) encode(dst []byte) {
	dst[0] = uint8(len(x.id))
	binary.LittleEndian.PutUint16(dst[1:], uint16(len(x.packed)))
	dst = dst[extraHead:]
	copy(dst[copy(dst, x.id):], x.packed)
}

// extra returns the extra of r, which follows the URL in the arena.
func (s *documentTable) extra(r *record) (x extra) {
	if r.flags&hasExtra == 0 {
		return x
	}
	head := s.bytes.Bytes(r.text, int(r.urlLen)+extraHead)[r.urlLen:]
	id, packed := int(head[0]), int(binary.LittleEndian.Uint16(head[1:]))
	from := int(r.urlLen) + extraHead
	all := s.bytes.Bytes(r.text, from+id+packed)[from:]
	x.id, x.packed = all[:id], all[id:]
	return x
}

// size returns the length of a record's text.
func (s *documentTable) size(r *record) int {
	n := int(r.urlLen)
	if r.flags&hasExtra != 0 {
		x := s.extra(r)
		n += x.size()
	}
	return n
}

// setPacked replaces the Packed of a record. packed may alias the record.
func (s *documentTable) setPacked(r *record, packed docindex.Packed) {
	x := s.extra(r)
	if string(x.packed) == string(packed) {
		return
	}
	x.packed = packed
	old, was := r.text, s.size(r)
	n := int(r.urlLen)
	if !x.empty() {
		n += x.size()
	}
	ref, room := s.bytes.New(n)
	copy(room, s.url(r))
	r.flags &^= hasExtra
	if !x.empty() {
		r.flags |= hasExtra
		x.encode(room[r.urlLen:])
	}
	r.text = ref
	s.bytes.Free(old, was)
}
