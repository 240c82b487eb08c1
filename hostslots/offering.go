package hostslots

import "urlserver/internal/container/slab"

// offering is the origins and pool queues of each host that offer a document, in the order in which
// their first documents go. host.first is the first of them. Few hosts have others. These are in a
// heap of the host, each with a copy of its first document, which its origin.place names. The
// origin.place of host.first names the root of the heap; 0: it is empty.
type offering struct {
	records *registry
	copies  slab.Slab[document]
	heaps   docHeaps // of copies
}

func (f *offering) init(r *registry) { f.records, f.heaps.docs = r, &f.copies }

// update puts a queue where it belongs after its first document, or the result of origin.offers,
// which was before, may have changed. It returns what origin.offers returns now.
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
