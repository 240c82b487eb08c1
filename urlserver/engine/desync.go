package engine

import (
	"time"

	"urlserver/hostslots"
)

const (
	// desyncShare bounds how much longer than necessary a gap may become: the gap divided by
	// desyncShare.
	desyncShare = 16
	// desyncTimes bounds it for groups of a crowd, too: to so many times the lateness.
	desyncTimes = 16
	// together is how many groups may be late at once: the last of so many is not much later.
	together = 64

	golden = 0x9E3779B9 // 2^32 divided by the golden ratio: sums of it are spread evenly
)

// desync keeps apart the groups that are sent together because the engine was held up: each
// group's next request is as late as the latest of them was. Without this the groups would be due
// together for ever, each stall would add to them, and most would be late in each round. A crowd,
// as where all hosts begin at once, was due as fast as the engine can send, so it stays late. Each
// of its groups is put off by another part of what is allowed.
func (e *Engine) desync(t hostslots.Selection) {
	s, late := &e.sending, e.now-t.Due
	s.lateness = max(s.lateness, late)
	most := e.slots.Group(t.Group).Gap() / desyncShare
	later := t.Due + min(s.lateness, most) - e.now
	if late >= lateAfter && most >= lateAfter {
		if s.late++; s.late > together {
			s.spread += golden
			later = max(later, time.Duration(float64(min(desyncTimes*s.lateness, most))*float64(s.spread)/(1<<32)))
		}
	}
	if later > 0 {
		e.slots.Group(t.Group).DelayGap(e.now, later)
	}
}
