package hostslots

import "urlserver/internal/container/slab"

// offering orders the origins and pool queues of each host that offer a document, by their first
// documents. host.first is the first queue. Few hosts have others. For each of these, a heap of the
// host has a copy of the queue's first document, and origin.place is the number of the copy. The
// origin.place of host.first is the root of the heap; 0: the heap is empty.
type offering struct {
	records *registry
	copies  slab.Slab[document]
	heaps   docHeaps // of copies
}

func (f *offering) init(r *registry) { f.records, f.heaps.docs = r, &f.copies }

// update puts a queue where it belongs after its first document, or its result of origin.offers,
// may have changed. before is that result before the change; update returns the present one.
func (f *offering) update(queue uint32, before bool) (offers bool) {
	o := f.records.origins.At(queue)
	offers = o.offers()
	if offers && before && o.place == 0 {
		return true // the ordinary case: it is the only one of its host
	}
	if before {
		f.remove(queue)
	}
	if offers {
		f.add(queue)
	}
	return offers
}

// add adds a queue that offers a document.
func (f *offering) add(queue uint32) {
	o := f.records.origins.At(queue)
	h := f.records.hosts.At(o.host)
	if h.first == 0 {
		h.first = queue
		return
	}
	first := f.records.origins.At(h.first)
	if docs := &f.records.docs; f.heaps.before(docs.At(o.queue), docs.At(first.queue)) {
		o.place, first.place = first.place, 0
		h.first, queue, o, first = queue, h.first, first, o
	}
	d := f.records.docs.At(o.queue)
	o.place = f.copies.New()
	*f.copies.At(o.place) = document{origin: queue, priority: d.priority, order: d.order}
	f.heaps.push(&first.place, o.place)
}

// remove removes a queue that was added.
func (f *offering) remove(queue uint32) {
	o := f.records.origins.At(queue)
	h := f.records.hosts.At(o.host)
	place := o.place
	o.place = 0
	switch first := f.records.origins.At(h.first); {
	case queue == h.first && place == 0:
		h.first = 0
		return
	case queue == h.first:
		h.first = f.copies.At(place).origin
		root := place
		f.heaps.pop(&root)
		f.records.origins.At(h.first).place = root
	case first.place == place:
		f.heaps.pop(&first.place)
	default:
		f.heaps.remove(place)
	}
	f.copies.Free(place)
}
