package engine

import (
	"urlserver/hostslots"
)

// desyncShare bounds by how much a gap is longer than it need be: the gap through this.
const desyncShare = 16

// desync has groups that are sent together, because the engine was held up, be due next as far apart as they were
// now: all as late as the latest of them. Gaps count from the last request, so they would be due together for ever,
// each hold-up would add to them, and most would be late in each round.
func (e *Engine) desync(t hostslots.Selection) {
	e.sending.lateness = max(e.sending.lateness, e.now-t.Due)
	by := min(e.sending.lateness, e.slots.Group(t.Group).Gap()/desyncShare)
	if later := t.Due + by - e.now; later > 0 {
		e.slots.Group(t.Group).DelayGap(e.now, later)
	}
}
