package hostslots

import "time"

// claim is how a group stands with the reservation that daemons share. Where Config.Claims is set, a group may be asked
// while it is held, and only then: otherwise it is in neither heap of due groups.
type claim uint8

const (
	unclaimed claim = iota
	wanted          // in line to be claimed
	claiming        // the caller is at it
	held            // until the time in the heap of claims
	refused         // until the time in the heap of claims: somebody else has it
)

const firstRefusal = time.Second / 2 // until a group that was refused is wanted again

// needs reports whether a group has a use for a claim: something to ask, or somebody at it.
func (g *group) needs() bool {
	return g.slot != 0 && g.turns.head != 0 || g.asksAny() || g.active() > 0
}

// reclaim puts a group in line for a claim, or lets go of one, as it needs. A refusal lasts its time.
func (s *Slots) reclaim(id uint32, g *group) {
	switch needs := g.needs(); {
	case needs && g.claim == unclaimed:
		g.claim = wanted
		s.byWanted.pushBack(&s.wanted, id)
	case needs:
	case g.claim == wanted:
		g.claim = unclaimed
		s.byWanted.remove(&s.wanted, id)
	case g.claim == held: // it may need it again at once: Released looks
		s.idleClaims = append(s.idleClaims, id)
	}
}

func (s *Slots) unclaim(id uint32, g *group) {
	g.claim = unclaimed
	s.claims.Remove(id)
	s.lingers.Remove(id)
}

// Wanted takes the group that has been in line for a claim longest; Granted or Refused is to follow. 0: none is.
func (s *Slots) NextWantedLease() (groupID uint32) {
	id := s.wanted.head
	if id != 0 {
		s.byWanted.remove(&s.wanted, id)
		s.groups.At(id).claim = claiming
	}
	return id
}

// Granted says that a wanted group is claimed, or goes on to be so, until the given moment. A group whose claim has
// lapsed stays without.
func (s *Slots) leaseGranted(now time.Duration, groupID uint32, until time.Duration) {
	g := s.groups.At(groupID)
	if g.claim != claiming && g.claim != held {
		return
	}
	g.claim, g.refusals = held, 0
	s.claims.Set(groupID, until)
	s.place(now, groupID)
}

// Refused says that a wanted group cannot be claimed now, or that a claim has turned out to be over. It gives its slot
// up where others wait. It is wanted again after a wait that doubles, up to most, until it is granted.
func (s *Slots) leaseDenied(now time.Duration, groupID uint32, most time.Duration) {
	g := s.groups.At(groupID)
	if g.claim != claiming && g.claim != held {
		return
	}
	g.claim = refused
	s.claims.Set(groupID, now+min(most, firstRefusal<<g.refusals))
	g.refusals = min(g.refusals+1, 10)
	s.recount(groupID)
	s.place(now, groupID)
}

// Released gives up the claims that are not needed any more, and appends their groups. One whose group may be asked again
// within linger is kept until then, as long as it lasts: nobody else could use it sooner, and the group's next documents
// may come.
func (s *Slots) ReleasedLeases(now, linger time.Duration, to []uint32) []uint32 {
	for _, id := range s.idleClaims {
		to = s.letGo(now, linger, id, to)
	}
	s.idleClaims = s.idleClaims[:0]
	for {
		id, until, ok := s.lingers.Min()
		if !ok || until > now {
			return to
		}
		s.lingers.Remove(id)
		to = s.letGo(now, 0, id, to)
	}
}

func (s *Slots) letGo(now, linger time.Duration, id uint32, to []uint32) []uint32 {
	g := s.groups.At(id)
	if g.claim != held || g.needs() {
		return to
	}
	if due := s.due(g); due > now && due-now <= linger && due < s.claims.Due(id) {
		s.lingers.Set(id, due)
		return to
	}
	s.unclaim(id, g)
	return append(to, id)
}

// lapse ends claims, and refusals, whose time is over.
func (s *Slots) lapse(now time.Duration) {
	for {
		id, until, ok := s.claims.Min()
		if !ok || until > now {
			return
		}
		s.unclaim(id, s.groups.At(id))
		s.recount(id)
		s.place(now, id)
	}
}

// Recounted appends the groups whose number of documents may have changed since the last call; a number may be another
// group's by now.
func (s *Slots) ChangedGroups(to []uint32) []uint32 {
	for _, id := range s.recounted {
		s.groups.At(id).recounted = false
	}
	to = append(to, s.recounted...)
	s.recounted = s.recounted[:0]
	return to
}
