// Package timeheap orders numbered records by due time. Records that are added in the order of their
// due times, as happens where all wait equally long, are in a queue; the others are in a 4-ary heap.
// The position of each record is known. So any record is added, moved or removed in O(log n), and
// mostly in O(1). Pure: time is a value.
package timeheap

import "time"

const arity = 4 // four entries of 16 bytes are one cache line

// Heap orders record numbers by due time; at equal times, the one set earlier comes first. The zero
// value is ready. Not safe for concurrent use.
type Heap struct {
	run     run
	entries []entry  // a heap of those that are not in the run
	pos     []uint32 // by record: its position in entries plus one, or its number in run; 0: neither
	seq     uint32
}

// inRun is added to positions that are numbers in the run.
const inRun = 1 << 31

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
func (h *Heap) Len() int { return h.run.live + len(h.entries) }

// Has reports whether id is in the heap.
func (h *Heap) Has(id uint32) bool { return int(id) < len(h.pos) && h.pos[id] != 0 }

// Min returns the record that is due first; ok is false if the heap is empty.
func (h *Heap) Min() (id uint32, due time.Duration, ok bool) {
	switch {
	case h.run.live == 0 && len(h.entries) == 0:
		return 0, 0, false
	case h.run.live == 0:
		return h.entries[0].id, h.entries[0].due, true
	}
	e := h.run.at(h.run.first)
	if len(h.entries) > 0 && h.entries[0].before(*e) {
		e = &h.entries[0]
	}
	return e.id, e.due, true
}

// Ahead returns a record that is likely to be due so many records after the first; 0: not known.
func (h *Heap) Ahead(records int) (id uint32) {
	if records >= h.run.length() {
		return 0
	}
	if id = h.run.at(h.run.first + uint32(records)).id; id == gap {
		return 0
	}
	return id
}

// Read reads what Set and Remove of id begin with, so that the processor has it in its cache by then.
// The result means nothing.
func (h *Heap) Read(id uint32) uint32 {
	if int(id) >= len(h.pos) {
		return 0
	}
	return h.pos[id]
}

// Each calls yield with each record and its due time until yield returns false. The record due
// first comes first; the others come in any order. yield must not change the heap.
func (h *Heap) Each(yield func(id uint32, due time.Duration) bool) {
	first, due, ok := h.Min()
	if !ok || !yield(first, due) {
		return
	}
	for i := range h.run.length() {
		if e := h.run.at(h.run.first + uint32(i)); e.id != gap && e.id != first && !yield(e.id, e.due) {
			return
		}
	}
	for _, e := range h.entries {
		if e.id != first && !yield(e.id, e.due) {
			return
		}
	}
}

// Due returns the due time of id, which must be in the heap.
func (h *Heap) Due(id uint32) time.Duration { return h.at(h.pos[id]).due }

// at returns the entry at a position.
func (h *Heap) at(pos uint32) *entry {
	if pos&inRun != 0 {
		return h.run.at(pos)
	}
	return &h.entries[pos-1]
}

// Set adds id, or changes its due time. A record set to the due time that it has keeps its place
// among equals.
func (h *Heap) Set(id uint32, due time.Duration) {
	for int(id) >= len(h.pos) {
		h.pos = append(h.pos, make([]uint32, max(64, len(h.pos)/2))...)
	}
	if at := h.pos[id]; at != 0 {
		if h.at(at).due == due {
			return
		}
		h.remove(at)
	}
	h.seq++
	h.add(entry{due: due, id: id, seq: h.seq})
}

// add adds an entry that is newer than all others. If it is due before the last one of the run,
// that goes to the heap: a single record that is due late is not to keep the others out of the run.
func (h *Heap) add(e entry) {
	if h.run.live > 0 && e.due < h.run.last().due {
		last := h.run.last()
		h.run.remove(h.run.end - 1)
		h.push(last)
		if h.run.live > 0 && e.due < h.run.last().due {
			h.push(e)
			return
		}
	}
	if h.run.length() > 2*h.run.live+chunkLen {
		h.closeGaps()
	}
	h.pos[e.id] = inRun | h.run.push(e)
}

// closeGaps moves the entries of the run together.
func (h *Heap) closeGaps() {
	old := h.run
	h.run = run{}
	for i := range old.length() {
		if e := old.at(old.first + uint32(i)); e.id != gap {
			h.pos[e.id] = inRun | h.run.push(*e)
		}
	}
}

// Remove removes id if it is in the heap.
func (h *Heap) Remove(id uint32) {
	if h.Has(id) {
		h.remove(h.pos[id])
		h.pos[id] = 0
	}
}

// remove removes the entry at a position.
func (h *Heap) remove(pos uint32) {
	if pos&inRun != 0 {
		h.run.remove(pos &^ inRun)
		return
	}
	n := len(h.entries) - 1
	last := h.entries[n]
	h.entries = h.entries[:n]
	if i := int(pos - 1); i < n {
		h.fix(i, last)
	}
}

// push adds an entry to the entries of the heap.
func (h *Heap) push(e entry) {
	h.entries = append(h.entries, e)
	h.up(len(h.entries)-1, e)
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
