package engine

import (
	"urlserver/hostslots"
)

// desync lengthens a gap by at most 1/desyncShare of it.
const desyncShare = 16

// desync keeps apart the groups that are sent together because the engine was held up: each
// group's next request is as late as the latest of them was. Gaps count from the last request, so
// without this the groups would be due together for ever, each stall would add to them, and most
// would be late in each round.
func (e *Engine) desync(t hostslots.Selection) {
	e.sending.lateness = max(e.sending.lateness, e.now-t.Due)
	by := min(e.sending.lateness, e.slots.Group(t.Group).Gap()/desyncShare)
	if later := t.Due + by - e.now; later > 0 {
		e.slots.Group(t.Group).DelayGap(e.now, later)
	}
}
