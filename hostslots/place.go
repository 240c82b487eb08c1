package hostslots

import (
	"math"
	"time"

	"urlserver/internal/container/timeheap"
)

// place puts a group where it belongs after anything about it has changed: into
// the heaps of due groups or out of them, into a slot, in line for one, or out.
// What it sets free goes to the groups in line.
func (s *Slots) place(now time.Duration, id uint32) {
	s.arrange(now, id)
	s.fill(now)
}

func (s *Slots) arrange(now time.Duration, id uint32) {
	g := s.groups.At(id)
	s.renew(id, g)
	s.seat(now, id, g)
	due := s.due(g)
	free := (g.active() < s.most(g) || faulty(faultConcurrent)) && !g.waits()
	if s.cfg.Leases {
		s.reclaim(id, g)
		free = free && g.claim == held
	}
	enter(&s.sends, id, due, now, free && g.slot != 0 && g.turns.head != 0)
	for try := range g.asks {
		enter(&s.asked[try], id, due, now, free && g.asks[try].head != 0)
	}
	s.bySlow.set(&s.slow, id, s.isSlow(now, g))
	s.bySpent.set(&s.spent, id, s.isSpent(g))
}

// enter makes id a member of a heap, or not: keyed by when it is due, or by when
// it came in where it could have been asked before. Once its time has come it
// keeps its place among those whose time has come.
func enter(h *timeheap.Heap, id uint32, due, now time.Duration, in bool) {
	switch {
	case !in:
		h.Remove(id)
	case due > now || !h.Has(id) || h.Due(id) > now:
		h.Set(id, max(due, now))
	}
}

func (s *Slots) placeHost(now time.Duration, hostID uint32) {
	if id := s.hosts.At(hostID).group; id != 0 {
		s.place(now, id)
	}
}

func (s *Slots) placeOrigin(now time.Duration, originID uint32) {
	s.placeHost(now, s.origins.At(originID).host)
}

// seat gives a group with documents a slot or a place in line, and takes both
// from one without.
func (s *Slots) seat(now time.Duration, id uint32, g *group) {
	switch {
	case g.docs == 0 && g.slot != 0:
		s.release(now, id, g)
	case g.docs == 0:
		s.left.Leave(id)
	case g.slot == 0 && s.emptySlot != 0:
		s.admit(now, id, g)
	case g.slot == 0:
		s.left.Wait(id, s.useful(now, id, g))
	}
}

// useful is the moment from which a group without a slot could make use of one.
// For one that could now it is when that began, which keeps the line in order.
func (s *Slots) useful(now time.Duration, id uint32, g *group) time.Duration {
	if g.turns.head == 0 || g.waits() {
		return math.MaxInt64
	}
	due := s.due(g)
	if g.claim == refused {
		due = max(due, s.claims.Due(id))
	}
	if due <= now && s.left.Waits(id) && s.left.From(id) <= now {
		return s.left.From(id)
	}
	return max(due, now)
}

// admit gives an empty slot to a group.
func (s *Slots) admit(now time.Duration, id uint32, g *group) {
	n := s.emptySlot - 1
	s.emptySlot = s.slots[n].next
	s.renewSlot(&s.slots[n])
	s.slots[n].group, s.slots[n].next, s.slots[n].sent, s.slots[n].since = id, 0, 0, now
	g.slot = n + 1
	s.used++
	s.left.Leave(id)
	s.cools.Remove(id)
	s.recount(id)
}

// release empties a group's slot; the group's times stay with the group.
func (s *Slots) release(now time.Duration, id uint32, g *group) {
	n := g.slot - 1
	g.slot = 0
	s.slots[n].group, s.slots[n].next, s.slots[n].spider = 0, s.emptySlot, 0
	s.emptySlot = n + 1
	s.used--
	if faulty(faultForget) {
		g.last, g.notBefore = 0, 0
	}
	if due := s.due(g); due > now {
		s.cools.Set(id, due)
	}
	s.recount(id)
}

// fill gives empty slots to the groups in line, and the slots of groups that
// may not be asked for long, or have had their turn, to those that may be asked.
func (s *Slots) fill(now time.Duration) {
	for {
		id, from, ok := s.left.First()
		if !ok || s.emptySlot == 0 && (s.groups.At(id).claim == refused || !s.handOver(now, from)) {
			return
		}
		s.admit(now, id, s.groups.At(id))
		s.arrange(now, id)
	}
}

// isSlow reports whether a group sits on a slot that it cannot use for longer
// than patience. Nothing of it is at a spider then.
func (s *Slots) isSlow(now time.Duration, g *group) bool {
	return g.slot != 0 && g.sent == 0 && (g.turns.head == 0 || g.claim == refused || s.due(g)-now > s.cfg.Patience)
}

// isSpent reports whether a group has sent a slotful and nothing of it is at a spider: it is the turn of those that wait,
// so that groups with more and more documents do not keep their slots for ever.
func (s *Slots) isSpent(g *group) bool {
	return g.slot != 0 && g.sent == 0 && s.slots[g.slot-1].sent >= uint32(s.cfg.Len)
}

// handOver empties the slot of a slow group for one that could use it from the
// given moment, or that of one that has had its turn for one that can use it now.
func (s *Slots) handOver(now time.Duration, from time.Duration) bool {
	if from == math.MaxInt64 || from-now > s.cfg.Patience {
		return false
	}
	for s.slow.head != 0 {
		id := s.slow.head
		s.bySlow.remove(&s.slow, id)
		if s.isSlow(now, s.groups.At(id)) {
			s.giveUp(now, id)
			return true
		}
	}
	if from > now || s.spent.head == 0 {
		return false
	}
	s.giveUp(now, s.spent.head)
	return true
}

// giveUp has a group give its slot up and wait for one.
func (s *Slots) giveUp(now time.Duration, id uint32) {
	g := s.groups.At(id)
	s.bySlow.set(&s.slow, id, false)
	s.bySpent.set(&s.spent, id, false)
	s.sends.Remove(id)
	s.release(now, id, g)
	if g.claim == held { // others may have it meanwhile
		s.reclaim(id, g)
	}
	s.left.Wait(id, s.useful(now, id, g))
}
