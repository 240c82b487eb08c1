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

// Hash returns a hash of the host's name. It differs from daemon to daemon.
func (h Host) Hash() uint32 { return h.record().hash }

// Docs returns the number of documents held for the host, those at spiders included.
func (h Host) Docs() int { return int(h.record().docs) }

// Needed reports whether the host has documents or requests of the daemon's own.
func (h Host) Needed() bool { return h.record().docs > 0 || h.record().own > 0 }

// Pin keeps the host known and in its group until Unpin, as documents would. Pins are counted.
func (h Host) Pin() {
	h.record().pins++
	h.s.sweeper.update(h.id, h.record())
}

// Unpin undoes one Pin.
func (h Host) Unpin() {
	h.record().pins--
	h.s.sweeper.update(h.id, h.record())
}

// Origins calls yield with each origin of the host.
func (h Host) Origins(yield func(originID uint32)) {
	for id := h.record().origins; id != 0; id = h.s.origins.At(id).next {
		if h.s.origins.At(id).pool == 0 {
			yield(id)
		}
	}
}

// Pools calls yield with the spider pool of each queue of the host that has documents to send, and at the end
// with 0 if there are documents for any spider.
func (h Host) Pools(yield func(pool uint32)) {
	plain := false
	for id := h.record().origins; id != 0; id = h.s.origins.At(id).next {
		switch o := h.s.origins.At(id); {
		case o.queue == 0:
		case o.pool == 0:
			plain = true
		default:
			yield(o.pool)
		}
	}
	if plain {
		yield(0)
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

// Group returns the handle of the host's group. The host must have one.
func (h Host) Group() Group { return h.s.Group(h.record().group) }

// BlockedUntil returns the moment at which the operator's block ends; 0: there is none.
func (h Host) BlockedUntil() time.Duration {
	if !h.record().blocked {
		return 0
	}
	return h.s.pacer.blocks.Due(h.id)
}

// Blocked reports whether the host is blocked, by the operator or by its limits.
func (h Host) Blocked() bool { return h.record().blocked || h.record().ruleBlocked }

// Leased reports whether the daemon has the lease of the host's group now.
func (h Host) Leased() bool {
	group := h.record().group
	return group != 0 && h.s.Group(group).Leased()
}

// LeasedUntil returns the end of the lease that a request to the host needs, or of the first to end
// if it needs two: that of its group, and that of the address above a site group. The daemon must
// have both.
func (h Host) LeasedUntil() time.Duration {
	ends, r := &h.s.leases.ends, h.record()
	until := ends.Due(r.group)
	if r.above != 0 && ends.Has(r.above) && !r.covered {
		until = min(until, ends.Due(r.above))
	}
	return until
}

// GroupDue returns the moment from which a request may be sent to the host's group, whatever its
// sites ask for. The host must have a group.
func (h Host) GroupDue() time.Duration { return h.s.pacer.groupDue(h.s.groups.At(h.record().group)) }

// RemainingWait returns how long no request may be sent to the host, 0 if one may be sent now, and
// the gap of its site, 0 if that is not longer than Config.SiteGap. Both are 0 for a host without a
// group.
func (h Host) RemainingWait(now time.Duration) (wait, gap time.Duration) {
	s, r := h.s, h.record()
	if r.group == 0 {
		return 0, 0
	}
	g := s.groups.At(r.group)
	due := s.pacer.groupDue(g)
	site, ordinary := s.sitePace(r)
	if gap = s.pacer.gap(site, ordinary); gap <= s.cfg.SiteGap {
		gap = 0
	}
	return max(0, due-now, s.pacer.due(site, ordinary)-now), gap
}
