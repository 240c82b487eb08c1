package disk

import (
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"
)

// transits has the documents in transit by number, finds them by name, and counts those of each lease
// batch. The zero value is empty.
type transits struct {
	list    slab.Slab[transit]
	byName  hashindex.Index
	batches map[uint64]int // transits left of each lease batch's row
}

func (x *transits) at(id uint32) *transit { return x.list.At(id) }

func (x *transits) length() int { return x.list.Len() }

// bound is one more than the largest number. A number below it may be unused: its transit has no
// queue.
func (x *transits) bound() uint32 { return uint32(x.list.Cap()) }

// of returns the number of the transit of a document, or 0.
func (x *transits) of(n *name) uint32 {
	if x.byName.Len() == 0 {
		return 0
	}
	return x.byName.Find(n.hash32(), func(id uint32) bool { return x.at(id).name == *n })
}

func (x *transits) add(t transit) (id uint32) {
	id = x.list.New()
	*x.at(id) = t
	x.byName.Add(t.name.hash32(), id)
	if t.leaseBatch != 0 {
		if x.batches == nil {
			x.batches = map[uint64]int{}
		}
		x.batches[t.leaseBatch]++
	}
	return id
}

// setHost sets the host of the transits of a queue, whose key was their host up to now.
func (x *transits) setHost(queue uint32, host string) {
	for id := uint32(1); id < x.bound(); id++ {
		if t := x.at(id); t.queue == queue {
			t.host = host
		}
	}
}

// remove removes a transit and returns it. last reports whether it was the last one of its lease
// batch.
func (x *transits) remove(id uint32) (t transit, last bool) {
	t = *x.at(id)
	x.byName.Remove(t.name.hash32(), id)
	x.list.Free(id)
	if t.leaseBatch != 0 {
		if x.batches[t.leaseBatch]--; x.batches[t.leaseBatch] == 0 {
			delete(x.batches, t.leaseBatch)
			last = true
		}
	}
	return t, last
}
