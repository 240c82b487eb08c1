package queuesched

// hostOverride is what an operator has set on a host. It holds for all consumers and all crawls.
type hostOverride struct {
	blocked int64 // until then; 0: not
	delay   int64 // after a URL on it was handed out or came back from the slots; 0: none
	asked   int64 // when that last happened; 0: never
}

// SetHostOverride changes the settings of a host. It returns false if too many hosts have settings.
func (d *Scheduler) SetHostOverride(name []byte, s Settings, now int64) bool {
	d.LoadHost(name)
	id := d.hosts.find(name)
	o, ordered := d.hosts.overrides[id]
	if !ordered && len(d.hosts.overrides) >= maxPreset {
		return false
	}
	if id == 0 {
		id = d.hosts.open(name)
	}
	if !ordered {
		o.asked = d.lastRequest(id)
	}
	if s.Blocked != nil {
		o.blocked = *s.Blocked
	}
	if s.Delay != nil {
		o.delay = *s.Delay
	}
	d.hosts.setOverride(id, o, now)
	d.refreshHost(id, now)
	d.hosts.release(id, now)
	return true
}

// setOverride stores an override, or removes it if it sets nothing.
func (h *hosts) setOverride(id uint32, o hostOverride, now int64) {
	if h.at(id).overridden = o.blocked > now || o.delay > 0; !h.at(id).overridden {
		delete(h.overrides, id)
		return
	}
	h.overrides[id] = o
}

// lastRequest returns when a URL of a host was last handed out or came back, before the host had an
// override.
func (d *Scheduler) lastRequest(id uint32) (at int64) {
	for q := d.hosts.at(id).queues; q != 0; q = d.queues.At(q).hostNext {
		at = max(at, d.queues.At(q).served[SlotConsumer], d.queues.At(q).served[FrontierConsumer])
	}
	return at
}

// noteRequest records that a host with an override was requested now.
func (h *hosts) noteRequest(id uint32, now int64) {
	if h.at(id).overridden {
		o := h.overrides[id]
		o.asked = now
		h.overrides[id] = o
	}
}

// overrideNotBefore returns when the override of a host allows to hand out a URL, or Never if the
// slots first have to return theirs.
func (h *hosts) overrideNotBefore(id uint32, consumer Consumer) int64 {
	one := h.at(id)
	if !one.overridden {
		return 0
	}
	o := h.overrides[id]
	if o.delay > 0 && consumer != FrontierConsumer && one.out[SlotConsumer]+one.out[RemoteConsumer] > 0 {
		return Never
	}
	return max(o.blocked, after(o.asked, o.delay))
}

// moveToTail moves a queue to the end of its host's list, so that the host's other queues are
// served first next time.
func (d *Scheduler) moveToTail(id uint32) {
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

// HostOverride returns the settings of a host; nil fields are not set.
func (d *Scheduler) HostOverride(name []byte) (s Settings) {
	if o, ok := d.hosts.overrides[d.hosts.find(name)]; ok {
		s = o.settings()
	}
	return s
}

func (o hostOverride) settings() (s Settings) {
	if o.delay > 0 {
		s.Delay = &o.delay
	}
	if o.blocked > 0 {
		s.Blocked = &o.blocked
	}
	return s
}

// HostOverrides visits the settings of all hosts, in no order.
func (d *Scheduler) HostOverrides(visit func(host string, s Settings)) {
	for id, o := range d.hosts.overrides {
		one := d.hosts.at(id)
		visit(string(d.hosts.names.Bytes(one.name, int(one.nameLen))), o.settings())
	}
}

// QueuesOf visits the queues with a host as key, until visit returns false.
func (d *Scheduler) QueuesOf(host []byte, visit func(id uint32) bool) {
	d.LoadHost(host)
	id := d.hosts.find(host)
	if id == 0 {
		return
	}
	for q := d.hosts.at(id).queues; q != 0; q = d.queues.At(q).hostNext {
		if d.Exists(q) && !visit(q) {
			return
		}
	}
}
