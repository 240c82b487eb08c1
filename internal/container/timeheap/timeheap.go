// Package timeheap orders numbered records by due time. It is a 4-ary heap that knows the position
// of each record, so any record is moved or removed in O(log n). Pure: time is a value.
package timeheap

import "time"

const arity = 4 // four entries of 16 bytes are one cache line

// Heap orders record numbers by due time; at equal times, the one set earlier comes first. The zero
// value is ready. Not safe for concurrent use.
type Heap struct {
	entries []entry
	pos     []uint32 // by record: its position in entries plus one; 0: not in the heap
	seq     uint32
}

type entry struct {
	due time.Duration
	id  uint32
	seq uint32 // breaks ties; compared by difference, so that it may wrap
}

func (e entry) before(f entry) bool {
	if e.due != f.due {
		return e.due < f.due
	}
	return int32(e.seq-f.seq) < 0
}

// Len returns the number of records in the heap.
func (h *Heap) Len() int { return len(h.entries) }

// Has reports whether id is in the heap.
func (h *Heap) Has(id uint32) bool { return int(id) < len(h.pos) && h.pos[id] != 0 }

// Min returns the record that is due first; ok is false if the heap is empty.
func (h *Heap) Min() (id uint32, due time.Duration, ok bool) {
	if len(h.entries) == 0 {
		return 0, 0, false
	}
	return h.entries[0].id, h.entries[0].due, true
}

// Each calls yield with each record and its due time until yield returns false. The record due
// first comes first; the others come in any order. yield must not change the heap.
func (h *Heap) Each(yield func(id uint32, due time.Duration) bool) {
	for _, e := range h.entries {
		if !yield(e.id, e.due) {
			return
		}
	}
}

// Due returns the due time of id, which must be in the heap.
func (h *Heap) Due(id uint32) time.Duration { return h.entries[h.pos[id]-1].due }

// Set adds id, or changes its due time. A record set to the due time that it has keeps its place
// among equals.
func (h *Heap) Set(id uint32, due time.Duration) {
	for int(id) >= len(h.pos) {
		h.pos = append(h.pos, make([]uint32, max(64, len(h.pos)/2))...)
	}
	at := h.pos[id]
	if at != 0 && h.entries[at-1].due == due {
		return
	}
	h.seq++
	e := entry{due: due, id: id, seq: h.seq}
	if at == 0 {
		h.entries = append(h.entries, e)
		h.up(len(h.entries)-1, e)
		return
	}
	h.fix(int(at-1), e)
}

// Remove removes id if it is in the heap.
func (h *Heap) Remove(id uint32) {
	if !h.Has(id) {
		return
	}
	i := int(h.pos[id] - 1)
	h.pos[id] = 0
	n := len(h.entries) - 1
	last := h.entries[n]
	h.entries = h.entries[:n]
	if i < n {
		h.fix(i, last)
	}
}

// fix stores e where it belongs, from position i up or down.
func (h *Heap) fix(i int, e entry) {
	if i > 0 && e.before(h.entries[(i-1)/arity]) {
		h.up(i, e)
		return
	}
	h.down(i, e)
}

func (h *Heap) up(i int, e entry) {
	for i > 0 {
		parent := (i - 1) / arity
		if !e.before(h.entries[parent]) {
			break
		}
		h.put(i, h.entries[parent])
		i = parent
	}
	h.put(i, e)
}

func (h *Heap) down(i int, e entry) {
	for {
		child := h.least(i*arity + 1)
		if child < 0 || !h.entries[child].before(e) {
			break
		}
		h.put(i, h.entries[child])
		i = child
	}
	h.put(i, e)
}

// least returns the position of the earliest of the siblings that start at first, or -1.
func (h *Heap) least(first int) int {
	if first >= len(h.entries) {
		return -1
	}
	best := first
	for i := first + 1; i < min(first+arity, len(h.entries)); i++ {
		if h.entries[i].before(h.entries[best]) {
			best = i
		}
	}
	return best
}

func (h *Heap) put(i int, e entry) {
	h.entries[i] = e
	h.pos[e.id] = uint32(i + 1)
}
