package hostslots

// link is a record's place in a doubly linked list.
type link struct{ prev, next uint32 }

// list is a chain of records.
type list struct{ head, tail uint32 }

// chain finds the link of a record; each kind of list has one.
type chain func(id uint32) *link

func (c chain) has(l *list, id uint32) bool { return l.head == id || c(id).prev != 0 }

func (c chain) pushBack(l *list, id uint32) {
	*c(id) = link{prev: l.tail}
	if l.tail == 0 {
		l.head = id
	} else {
		c(l.tail).next = id
	}
	l.tail = id
}

func (c chain) pushFront(l *list, id uint32) {
	*c(id) = link{next: l.head}
	if l.head == 0 {
		l.tail = id
	} else {
		c(l.head).prev = id
	}
	l.head = id
}

// remove takes out id, which is in l.
func (c chain) remove(l *list, id uint32) {
	k := *c(id)
	if k.prev == 0 {
		l.head = k.next
	} else {
		c(k.prev).next = k.next
	}
	if k.next == 0 {
		l.tail = k.prev
	} else {
		c(k.next).prev = k.prev
	}
	*c(id) = link{}
}

// set makes id a member of l, at its end, or not.
func (c chain) set(l *list, id uint32, in bool) {
	if in == c.has(l, id) {
		return
	}
	if in {
		c.pushBack(l, id)
		return
	}
	c.remove(l, id)
}
