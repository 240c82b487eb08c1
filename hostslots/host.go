package hostslots

import (
	"net/netip"
	"time"
)

// Host is a handle of a known host: a name or an IP literal. It is good as long as the host's
// number is; see EnsureOrigin.
type Host struct {
	s  *Slots
	id uint32
}

// Host returns the handle of a host by its number.
func (s *Slots) Host(id uint32) Host { return Host{s: s, id: id} }

func (h Host) record() *host { return h.s.hosts.At(h.id) }

// Name returns the host's name, which must not be changed.
func (h Host) Name() []byte { return h.s.hostName(h.id) }

// Docs returns the number of documents held for the host, those at spiders included.
func (h Host) Docs() int { return int(h.record().docs) }

// Needed reports whether the host has documents or requests of the daemon's own.
func (h Host) Needed() bool { return h.record().docs > 0 || h.record().own > 0 }

// Pin keeps the host known and in its group until Unpin, as documents would. Pins are counted.
func (h Host) Pin() { h.s.pin(h.id) }

// Unpin undoes one Pin.
func (h Host) Unpin() { h.s.unpin(h.id) }

// Origins calls yield with each origin of the host.
func (h Host) Origins(yield func(originID uint32)) {
	for id := h.record().origins; id != 0; id = h.s.origins.At(id).next {
		if h.s.origins.At(id).of == 0 {
			yield(id)
		}
	}
}

// Pools calls yield with the spider pool of each queue of the host that has documents to send.
func (h Host) Pools(yield func(pool uint32)) {
	for id := h.record().origins; id != 0; id = h.s.origins.At(id).next {
		if o := h.s.origins.At(id); o.queue != 0 {
			yield(o.pool)
		}
	}
}

// Settled reports whether the host keeps the group that it is in: it has documents, requests or
// pins. A host that is not settled is resolved and bound again before its next document is offered.
func (h Host) Settled() bool { return h.record().settled() }

// Resolving reports whether the host has documents, requests or pins but no group.
func (h Host) Resolving() bool { return h.record().group == 0 && h.record().busy() }

// Addr returns the address that requests to the host go to. The host must have a group.
func (h Host) Addr() netip.Addr { return h.s.addr(h.id) }

// GroupID returns the ID of the host's group; ok is false if it has none.
func (h Host) GroupID() (id GroupID, ok bool) {
	group := h.record().group
	if group == 0 {
		return GroupID{}, false
	}
	return h.s.groups.At(group).id, true
}

// Bind puts the host into the group of an address. A settled host stays where it is. A host that
// changes groups takes its earliest next-request time along.
func (h Host) Bind(now time.Duration, addr netip.Addr) { h.s.bindAddr(now, h.id, addr) }

// BindNamed puts the host into the group with a name, whatever addresses the group's hosts have.
// Otherwise it is like Bind.
func (h Host) BindNamed(now time.Duration, name string, addr netip.Addr) {
	h.s.bindNamed(now, h.id, name, addr)
}

// Unbind takes a host that is not settled out of its group. Documents that are offered for it
// later wait until it is bound again.
func (h Host) Unbind(now time.Duration) { h.s.unbind(now, h.id) }

// Move takes the host with all its documents out of its group, and returns true; the caller binds
// it again. The group with the ID to inherits the host's times and is put under the limits. If
// requests to the host are open it cannot leave: Move returns false, and Movable returns the host
// when they have ended. Until then nothing is sent to the host, nor to the group that it is to
// join. With elsewhere that group is not held up: the host has another address now, so the open
// requests are at another machine, and may take long.
func (h Host) Move(now time.Duration, to GroupID, l Limits, elsewhere bool) (moved bool) {
	return h.s.moveHost(now, h.id, to, l, elsewhere)
}

// CancelMove lets the host go on in the group that Move was to take it out of.
func (h Host) CancelMove(now time.Duration) { h.s.cancelMove(now, h.id) }

// SetLimits puts limits on the host, which need not be bound. A group obeys the strictest limits
// of its hosts. Requests that are open go on.
func (h Host) SetLimits(now time.Duration, l Limits) { h.s.setLimits(now, h.id, l) }

// Limits returns the limits that SetLimits put on the host.
func (h Host) Limits() Limits { return h.record().limits }

// SetCrawlDelay sets the Crawl-delay of the host's robots.txt; 0: none. A group obeys the longest
// one of its hosts.
func (h Host) SetCrawlDelay(now, delay time.Duration) { h.s.setCrawlDelay(now, h.id, delay) }

// Block stops all requests to the host until the given moment; a moment that has passed ends the
// block.
func (h Host) Block(now, until time.Duration) { h.s.blockHost(now, h.id, until) }

// BlockedUntil returns the moment at which the operator's block ends; 0: there is none.
func (h Host) BlockedUntil() time.Duration { return h.record().blocked }

// Blocked reports whether the host is blocked, by the operator or by its limits.
func (h Host) Blocked() bool { return h.record().blocked != 0 || h.record().limits.Blocked }

// SetAddressPending stops all requests to the host while its address is looked up again, or lets
// them go on. The host stays in its group with its documents.
func (h Host) SetAddressPending(now time.Duration, pending bool) {
	h.s.setAddressPending(now, h.id, pending)
}

// SetFailing sets whether the name of the host, which is not bound, fails to resolve for now. A
// failing host is in Rejects, and its documents are in Counts.Failing. Bind resets it.
func (h Host) SetFailing(failing bool) { h.s.setFailing(h.id, failing) }

// Fail gives up a host without an address: NextFailed returns its documents. It does nothing if
// the host is bound.
func (h Host) Fail() { h.s.failHost(h.id) }

// Leased reports whether the daemon has the lease of the host's group now.
func (h Host) Leased() bool {
	group := h.record().group
	return group != 0 && h.s.Group(group).Leased()
}

// LeasedUntil returns the end of the lease of the host's group, which must have one.
func (h Host) LeasedUntil() time.Duration { return h.s.leases.ends.Due(h.record().group) }

// QueueOwnRequest queues a request of the daemon's own to the host: one hop of a robots.txt fetch.
// It is sent at the pace of the host's group, before the group's documents, and needs no slot.
// NextOwnRequest returns its name, which is the caller's. While the host has no group or is
// blocked the request waits.
func (h Host) QueueOwnRequest(now time.Duration, name uint32, queue OwnQueue) {
	h.s.queueOwnRequest(now, h.id, name, queue)
}

// OwnRequestDone ends a request that NextOwnRequest started. The group's gap counts from now.
func (h Host) OwnRequestDone(now time.Duration, f Feedback) { h.s.ownRequestDone(now, h.id, f) }

// RetractOwnRequests removes the queued requests whose names are chosen, and returns those names.
func (h Host) RetractOwnRequests(now time.Duration, chosen func(name uint32) bool) []uint32 {
	return h.s.retractOwnRequests(now, h.id, chosen)
}

// View returns what is known of the host and its group.
func (h Host) View() HostView { return h.s.hostView(h.id) }
