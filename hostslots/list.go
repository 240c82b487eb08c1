package hostslots

import (
	"urlserver/internal/container/slab"
	"urlserver/internal/container/slabfield"
)

// link is the place of a record in a linked list, by the numbers of its neighbours.
type link struct{ prev, next uint32 }

// list is the first and the last record of a linked list; 0: the list is empty.
type list struct{ head, tail uint32 }

// links joins the records of a slab into doubly linked lists by one of their fields. A record can
// be in one list of the same links at a time. No method allocates.
type links[T any] struct{ field slabfield.Field[T, link] }

// newLinks returns the links that are in the field to which in returns a pointer.
func newLinks[T any](records *slab.Slab[T], in func(*T) *link) links[T] {
	return links[T]{slabfield.Of(records, in)}
}

func (k *links[T]) at(id uint32) *link { return k.field.At(id) }

// next returns the record after id; 0: id is the last.
func (k *links[T]) next(id uint32) uint32 { return k.at(id).next }

func (k *links[T]) has(l *list, id uint32) bool {
	return l.head != 0 && (l.head == id || k.at(id).prev != 0) // most lists are empty most of the time
}

func (k *links[T]) pushBack(l *list, id uint32) {
	*k.at(id) = link{prev: l.tail}
	if l.tail == 0 {
		l.head = id
	} else {
		k.at(l.tail).next = id
	}
	l.tail = id
}

func (k *links[T]) pushFront(l *list, id uint32) {
	*k.at(id) = link{next: l.head}
	if l.head == 0 {
		l.tail = id
	} else {
		k.at(l.head).prev = id
	}
	l.head = id
}

// remove takes id, which must be in the list, out of it.
func (k *links[T]) remove(l *list, id uint32) {
	at := k.at(id)
	was := *at
	*at = link{}
	if was.prev == 0 {
		l.head = was.next
	} else {
		k.at(was.prev).next = was.next
	}
	if was.next == 0 {
		l.tail = was.prev
	} else {
		k.at(was.next).prev = was.prev
	}
}

// set appends id to the list or removes it, so that it is in the list if in is true.
func (k *links[T]) set(l *list, id uint32, in bool) {
	switch {
	case in == k.has(l, id):
	case in:
		k.pushBack(l, id)
	default:
		k.remove(l, id)
	}
}

// recordList is a list with links of its own.
type recordList[T any] struct {
	list
	links links[T]
}

func newRecordList[T any](records *slab.Slab[T], field func(*T) *link) recordList[T] {
	return recordList[T]{links: newLinks(records, field)}
}

func (l *recordList[T]) has(id uint32) bool     { return l.links.has(&l.list, id) }
func (l *recordList[T]) next(id uint32) uint32  { return l.links.next(id) }
func (l *recordList[T]) pushBack(id uint32)     { l.links.pushBack(&l.list, id) }
func (l *recordList[T]) remove(id uint32)       { l.links.remove(&l.list, id) }
func (l *recordList[T]) set(id uint32, in bool) { l.links.set(&l.list, id, in) }

func (l *recordList[T]) moveToBack(id uint32) {
	l.remove(id)
	l.pushBack(id)
}
