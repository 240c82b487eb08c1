package engine

import (
	"urlserver/hostslots"
)

// spreadShare bounds by how much a gap is longer than it need be: the gap through this.
const spreadShare = 16

// keepApart has groups that are sent together, because the engine was held up, be due next as far apart as they were
// now: all as late as the latest of them. Gaps count from the last request, so they would be due together for ever,
// each hold-up would add to them, and most would be late in each round.
func (e *Engine) keepApart(t hostslots.Selection) {
	e.behind = max(e.behind, e.now-t.Due)
	by := min(e.behind, e.slots.Group(t.Group).Gap()/spreadShare)
	if later := t.Due + by - e.now; later > 0 {
		e.slots.Group(t.Group).DelayGap(e.now, later)
	}
}
