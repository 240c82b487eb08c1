package hostslots

import "time"

// SetLimits puts limits on the host, which need not be bound. A site of several hosts obeys the
// strictest of them. Requests that are open go on.
func (h Host) SetLimits(now time.Duration, l Limits) {
	s, r := h.s, h.record()
	old := h.Limits()
	if old == l {
		return
	}
	s.pacer.setLimits(r, l)
	r.ruleBlocked = l.Blocked
	s.changeLimits(r.group, old, l)
	if s.changeLimits(r.above, old, l); r.above != 0 {
		s.reschedule(now, r.above)
	}
	s.updateRejected(h.id)
	s.closedChanged(now, h.id)
}

// changeLimits is called when the limits of a host of a group, or of a group below it, have changed from old to l.
func (s *Slots) changeLimits(groupID uint32, old, l Limits) {
	if groupID != 0 {
		g := s.groups.At(groupID)
		s.pacer.removeLimits(g, groupID, old)
		s.pacer.addLimits(g, groupID, l)
	}
}

// SetPlaceLimits puts the limits of a place in force on a host that is there, and on its address.
func (h Host) SetPlaceLimits(now time.Duration, p Place) {
	h.SetLimits(now, p.Site)
	s, r := h.s, h.record()
	id := r.group
	if r.above != 0 {
		id = r.above
	}
	g := s.groups.At(id)
	if g.kind != ofAddress || g.cap == p.Address && p.LeftShared <= g.pace.notBefore {
		return
	}
	g.setCap(p.Address)
	g.pace.putOff(p.LeftShared, LeftShared)
	s.reschedule(now, id)
}

// SetCap sets this daemon's share of the cap of a shared network: one request each gap, and at most
// concurrent open requests, over all its sites. With concurrent 0, and before the first call,
// nothing is sent to the network. A network that was not known counts as requested now, since its
// sites may have been requested before it became known.
func (s *Slots) SetCap(now time.Duration, network string, gap time.Duration, concurrent int) {
	id := networkID(network)
	_, known := s.groupByID[id]
	n := s.ensureGroup(id, ofNetwork)
	if !known {
		s.groups.At(n).pace.requested(now)
	}
	s.named.names[id] = network
	s.groups.At(n).setCap(AddressLimits{Gap: gap, Concurrent: concurrent})
	s.updateCap(n)
}

// Limits returns the limits that SetLimits put on the host.
func (h Host) Limits() Limits { return h.s.pacer.limitsOf(h.record()) }

// SetCrawlDelay sets the Crawl-delay of the host's robots.txt; 0: none. A site of several hosts
// obeys the longest one.
func (h Host) SetCrawlDelay(now, delay time.Duration) {
	s, r := h.s, h.record()
	old := s.pacer.extra(&r.site).crawlDelay
	if old == delay {
		return
	}
	s.pacer.setCrawlDelay(&r.site, delay)
	if r.group == 0 {
		return
	}
	g := s.groups.At(r.group)
	s.pacer.addCrawlDelay(g, delay)
	s.removeCrawlDelay(g, old)
	s.keepFromOthers(now, r, g)
	s.updateTurn(h.id)
	s.reschedule(now, r.group)
}

// removeCrawlDelay is called when a host with this Crawl-delay leaves the group or gets another
// delay. It looks through the group's hosts only if this was the last host with the longest delay.
func (s *Slots) removeCrawlDelay(g *group, delay time.Duration) {
	if !s.pacer.removeCrawlDelay(g, delay) {
		return
	}
	for id := g.members.head; id != 0; id = s.members.next(id) {
		s.pacer.addCrawlDelay(g, s.pacer.extra(&s.hosts.At(id).site).crawlDelay)
	}
}

// Block stops all requests to the host until the given moment; a moment that has passed ends the
// block.
func (h Host) Block(now, until time.Duration) {
	h.record().blocked = until > now
	if until > now {
		h.s.pacer.blocks.Set(h.id, until)
	} else {
		h.s.pacer.blocks.Remove(h.id)
	}
	h.s.closedChanged(now, h.id)
}

// endBlocks ends the blocks whose time is over.
func (s *Slots) endBlocks(now time.Duration) {
	for {
		id, until, ok := s.pacer.blocks.Min()
		if !ok || until > now {
			return
		}
		s.Host(id).Block(now, 0)
	}
}

// SetRobotsPending holds back the documents of the origin while its robots.txt is not known, or, if
// pending is false, lets them go on. It then also moves the host to the front of its group's
// rotation, where the host was when the robots.txt was found to be missing.
func (o Origin) SetRobotsPending(now time.Duration, pending bool) {
	s, hostID := o.s, o.s.HostOf(o.id)
	o.queues(func(id uint32) {
		r := s.origins.At(id)
		before := r.offers()
		if r.closed &^= forRobots; pending {
			r.closed |= forRobots
		}
		s.queueChanged(id, before)
	})
	if !pending {
		s.moveHostToFront(hostID)
	}
	s.rescheduleHost(now, hostID)
}

// SetAddressPending stops all requests to the host while its address is looked up again, or lets
// them go on. The host stays in its group with its documents.
func (h Host) SetAddressPending(now time.Duration, pending bool) {
	r := h.record()
	if r.addressPending == pending {
		return
	}
	r.addressPending = pending
	if pending {
		h.Pin()
	} else {
		h.Unpin()
	}
	h.s.closedChanged(now, h.id)
}

// closedChanged brings the state of a host's group up to date after the result of host.closed may
// have changed.
func (s *Slots) closedChanged(now time.Duration, hostID uint32) {
	s.updateTurn(hostID)
	s.rescheduleHost(now, hostID)
}
