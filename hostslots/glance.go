package hostslots

import "time"

// State says how a slot stands.
type State uint8

const (
	Empty   State = iota // no group holds it
	Ready                // a document of it may go out now
	Active               // documents of it are at a spider
	Cooling              // none is, and its group may not be asked yet
	Stalled              // nothing of it may go: its hosts are blocked, or wait for robots.txt

	States = int(Stalled) + 1 // how many there are
)

// Glance is a slot without anything that costs more than a look at its group.
type SlotSummary struct {
	State State
	Sent  uint32        // documents at spiders
	Docs  uint32        // held by its group, those at spiders and beyond the slot's length among them
	Gap   time.Duration // in force
}

// Glances fills dst with the slots from the given one on, and returns how many there were.
func (s *Slots) Summaries(now time.Duration, from int, dst []SlotSummary) int {
	n := max(0, min(len(dst), len(s.slots)-from))
	for i := range dst[:n] {
		dst[i] = s.glance(now, s.slots[from+i].group)
	}
	return n
}

func (s *Slots) glance(now time.Duration, id uint32) SlotSummary {
	if id == 0 {
		return SlotSummary{}
	}
	g := s.groups.At(id)
	v := SlotSummary{State: Ready, Sent: g.sent, Docs: g.docs, Gap: s.gap(g)}
	switch {
	case g.sent > 0:
		v.State = Active
	case s.due(g) > now, g.waits():
		v.State = Cooling
	case g.turns.head == 0:
		v.State = Stalled
	}
	return v
}

// Blocked returns the blocked hosts, at most so many, and until when each is; all is how
// many there are.
func (s *Slots) Blocked(most int) (hosts []BlockedHost, all int) {
	s.block.Each(func(id uint32, until time.Duration) bool {
		hosts = append(hosts, BlockedHost{Name: string(s.hostName(id)), Until: until})
		return len(hosts) < most
	})
	return hosts, s.block.Len()
}

// BlockedHost is one that the operator has blocked.
type BlockedHost struct {
	Name  string
	Until time.Duration
}
