package hostslots

import "time"

// SetLimits puts limits on the host, which need not be bound. A group obeys the strictest limits
// of its hosts. Requests that are open go on.
func (h Host) SetLimits(now time.Duration, l Limits) {
	s, r := h.s, h.record()
	if r.limits == l {
		return
	}
	old := r.limits
	if r.limits = l; r.group != 0 {
		g := s.groups.At(r.group)
		s.pacer.addLimits(&g.pace, r.group, g.size+1, l)
		s.pacer.removeLimits(&g.pace, r.group, old)
		s.pacer.inherit(&g.pace, &r.carried, l)
	}
	s.updateRuleBlocked(h.id)
	s.closedChanged(now, h.id)
}

// Limits returns the limits that SetLimits put on the host.
func (h Host) Limits() Limits { return h.record().limits }

// SetCrawlDelay sets the Crawl-delay of the host's robots.txt; 0: none. A group obeys the longest
// one of its hosts.
func (h Host) SetCrawlDelay(now, delay time.Duration) {
	s, r := h.s, h.record()
	if r.crawlDelay == delay {
		return
	}
	old := r.crawlDelay
	r.crawlDelay = delay
	if r.group == 0 {
		return
	}
	g := s.groups.At(r.group)
	s.pacer.addCrawlDelay(&g.pace, delay)
	s.removeCrawlDelay(g, old)
	s.reschedule(now, r.group)
}

// removeCrawlDelay is called when a host with this Crawl-delay leaves the group or has another one
// now. The group's hosts are looked through only if it was the last with the longest delay.
func (s *Slots) removeCrawlDelay(g *group, delay time.Duration) {
	if !s.pacer.removeCrawlDelay(&g.pace, delay) {
		return
	}
	for id := g.members.head; id != 0; id = s.members.next(id) {
		s.pacer.addCrawlDelay(&g.pace, s.hosts.At(id).crawlDelay)
	}
}

// Block stops all requests to the host until the given moment; a moment that has passed ends the
// block.
func (h Host) Block(now, until time.Duration) {
	if until > now {
		h.record().blocked = until
		h.s.pacer.blocks.Set(h.id, until)
	} else {
		h.record().blocked = 0
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

// SetRobotsPending holds back the documents of an origin while its robots.txt is not known, or
// lets them go on.
func (s *Slots) SetRobotsPending(now time.Duration, originID uint32, pending bool) {
	hostID := s.HostOf(originID)
	for id := s.hosts.At(hostID).origins; id != 0; id = s.origins.At(id).next {
		if o := s.origins.At(id); id == originID || o.of == originID {
			before := o.offers()
			o.robotsPending = pending
			s.offersChanged(o, before)
		}
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
	s.updateRotation(hostID)
	s.resumeOwnRequests(hostID)
	s.rescheduleHost(now, hostID)
}
