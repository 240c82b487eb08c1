package hostslots

import "urlserver/internal/container/slab"

// docHeaps is the queues of documents. Each queue is a leftist heap: adding, taking and removing a
// document cost O(log n), whatever the order in which documents and priorities come (Knuth, The
// Art of Computer Programming 3, 5.2.3). A heap is named by its root, which is the document that
// goes first; 0: it is empty.
type docHeaps struct {
	docs     *slab.Slab[document]
	arrivals uint64
	walk     []uint32 // buffers of Origin.Queued
	url      []byte
}

// nextArrival returns the number of a new document in the order of arrival.
func (q *docHeaps) nextArrival() uint64 {
	q.arrivals++
	return q.arrivals
}

// before reports whether document a goes before document b: by priority, then by arrival.
func (q *docHeaps) before(a, b *document) bool {
	if a.priority != b.priority && !faulty(FaultPriority) {
		return a.priority > b.priority
	}
	return a.arrival() < b.arrival() != faulty(FaultOrder)
}

// merge joins two heaps. The depth of its recursion is logarithmic.
func (q *docHeaps) merge(a, b uint32) uint32 {
	if a == 0 {
		return b
	}
	if b == 0 {
		return a
	}
	x, y := q.docs.At(a), q.docs.At(b)
	if !q.before(x, y) {
		a, b, x = b, a, y
	}
	x.right = q.merge(x.right, b)
	q.docs.At(x.right).parent = a
	if q.rank(x.left) < q.rank(x.right) {
		x.left, x.right = x.right, x.left
	}
	x.setRank(q.rank(x.right) + 1)
	return a
}

func (q *docHeaps) rank(id uint32) uint8 {
	if id == 0 {
		return 0
	}
	return q.docs.At(id).rank()
}

// push adds a document to a heap.
func (q *docHeaps) push(root *uint32, id uint32) {
	d := q.docs.At(id)
	d.left, d.right = 0, 0
	d.setRank(1)
	q.setRoot(root, q.merge(*root, id))
}

// pop takes the first document out of a heap, which must not be empty.
func (q *docHeaps) pop(root *uint32) (id uint32) {
	id = *root
	d := q.docs.At(id)
	q.setRoot(root, q.merge(d.left, d.right))
	d.left, d.right, d.parent = 0, 0, notQueued
	return id
}

func (q *docHeaps) setRoot(root *uint32, id uint32) {
	*root = id
	if id != 0 {
		q.docs.At(id).parent = 0
	}
}

// remove takes a document that is not the first out of its heap.
func (q *docHeaps) remove(id uint32) {
	d := q.docs.At(id)
	parent, by := d.parent, q.merge(d.left, d.right)
	p := q.docs.At(parent)
	if p.left == id {
		p.left = by
	} else {
		p.right = by
	}
	if by != 0 {
		q.docs.At(by).parent = parent
	}
	q.fixRanks(parent)
	d.left, d.right, d.parent = 0, 0, notQueued
}

// fixRanks corrects ranks from a document towards the root. It ends at the first that is right, so
// it costs O(log n).
func (q *docHeaps) fixRanks(id uint32) {
	for id != 0 {
		d := q.docs.At(id)
		if q.rank(d.left) < q.rank(d.right) {
			d.left, d.right = d.right, d.left
		}
		rank := q.rank(d.right) + 1
		if rank == d.rank() {
			return
		}
		d.setRank(rank)
		id = d.parent
	}
}
