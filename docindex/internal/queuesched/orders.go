package queuesched

// order is what an operator has set on a host: it holds at all doors, for queues of all crawls.
type order struct {
	blocked int64 // until then; 0: not
	delay   int64 // since something on it was given out, or came back from slots; 0: none
	asked   int64 // when that was last; 0: never
}

// SetHost sets an order on a host; false: too many hosts have one.
func (d *Doors) SetHost(name []byte, s Settings, now int64) bool {
	id := d.hosts.find(name)
	o, ordered := d.hosts.orders[id]
	if !ordered && len(d.hosts.orders) >= maxPreset {
		return false
	}
	if id == 0 {
		id = d.hosts.open(name)
	}
	if !ordered {
		o.asked = d.askedBefore(id)
	}
	if s.Blocked != nil {
		o.blocked = *s.Blocked
	}
	if s.Delay != nil {
		o.delay = *s.Delay
	}
	d.hosts.order(id, o, now)
	d.refreshHost(id, now)
	d.hosts.release(id, now)
	return true
}

// order keeps an order, or forgets it where it says nothing.
func (h *hosts) order(id uint32, o order, now int64) {
	if h.at(id).ordered = o.blocked > now || o.delay > 0; !h.at(id).ordered {
		delete(h.orders, id)
		return
	}
	h.orders[id] = o
}

// askedBefore is when something of a host's queues was given out, or came back, before anybody took note of it.
func (d *Doors) askedBefore(id uint32) (at int64) {
	for q := d.hosts.at(id).queues; q != 0; q = d.queues.At(q).hostNext {
		at = max(at, d.queues.At(q).served[Slots], d.queues.At(q).served[Calls])
	}
	return at
}

// noteAsked counts an ordered host as asked now.
func (h *hosts) noteAsked(id uint32, now int64) {
	if h.at(id).ordered {
		o := h.orders[id]
		o.asked = now
		h.orders[id] = o
	}
}

// allowed is when a host may be asked through a door as its order has it, or Never before slots give back what they have.
func (h *hosts) allowed(id uint32, door Door) int64 {
	one := h.at(id)
	if !one.ordered {
		return 0
	}
	o := h.orders[id]
	if o.delay > 0 && door != Calls && one.out[Slots]+one.out[Lent] > 0 {
		return Never
	}
	return max(o.blocked, after(o.asked, o.delay))
}

// toTail has a queue be the last of its host's: the others are put in line before it when the host may be asked again.
func (d *Doors) toTail(id uint32) {
	h := d.hosts.at(d.queues.At(id).host)
	link := &h.queues
	for *link != id {
		link = &d.queues.At(*link).hostNext
	}
	*link = d.queues.At(id).hostNext
	d.queues.At(id).hostNext = 0
	for *link != 0 {
		link = &d.queues.At(*link).hostNext
	}
	*link = id
}

// OrderOf tells what is set on a host; nil is what is not.
func (d *Doors) OrderOf(name []byte) (s Settings) {
	if o, ok := d.hosts.orders[d.hosts.find(name)]; ok {
		s = o.settings()
	}
	return s
}

func (o order) settings() (s Settings) {
	if o.delay > 0 {
		s.Delay = &o.delay
	}
	if o.blocked > 0 {
		s.Blocked = &o.blocked
	}
	return s
}

// Orders visits what is set on hosts, in no order.
func (d *Doors) Orders(visit func(host string, s Settings)) {
	for id, o := range d.hosts.orders {
		one := d.hosts.at(id)
		visit(string(d.hosts.names.Bytes(one.name, int(one.nameLen))), o.settings())
	}
}

// QueuesOf visits the queues that have a host's name for a key, until visit answers false.
func (d *Doors) QueuesOf(host []byte, visit func(id uint32) bool) {
	id := d.hosts.find(host)
	if id == 0 {
		return
	}
	for q := d.hosts.at(id).queues; q != 0; q = d.queues.At(q).hostNext {
		if d.Live(q) && !visit(q) {
			return
		}
	}
}
