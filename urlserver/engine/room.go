package engine

import "time"

// noRoomSaid is spider.room of a spider that has not said how much it takes.
const noRoomSaid = -1

// setRoom notes that at most so many documents may be at a spider from now on.
func (e *Engine) setRoom(id uint32, sp *spider, n int) {
	took := sp.takes()
	sp.room = n
	e.countTaking(sp, took)
	if n == 0 {
		e.spiders.unreserve(sp.pool, id)
	}
}

// roomGrace is how long the slots keep documents that others could have while all spiders say ROOM 0:
// some say it for a moment only. When the last spider has gone they keep them for Options.GoneGrace.
const roomGrace = time.Second

// takes reports whether a spider takes documents: it has not said ROOM 0, and its delay has passed. So a
// connection that says nothing and ends at once, as that of a health check, never does.
func (sp *spider) takes() bool { return !sp.gone && sp.room != 0 && sp.notBefore == 0 }

// countTaking counts a spider that begins to take documents, or one that no longer does; took says whether it
// did before. A spider that was sent nothing, as a health check, makes the slots keep nothing.
func (e *Engine) countTaking(sp *spider, took bool) {
	switch takes := sp.takes(); {
	case takes && !took:
		e.spiders.taking++
	case took && !takes:
		grace := roomGrace
		if sp.gone {
			grace = e.opt.GoneGrace
		}
		if e.spiders.taking--; sp.sent > 0 {
			e.spiders.keepUntil = max(e.spiders.keepUntil, e.now+grace)
		}
	}
}

// noSpiders reports whether no spider takes documents while others could have those of the index.
func (e *Engine) noSpiders() bool {
	return e.isShared() && e.spiders.connected == 0 || e.leavesAll()
}

// leavesAll reports whether others are to have what the slots hold: no spider has taken documents for a while.
func (e *Engine) leavesAll() bool {
	return e.isShared() && e.spiders.taking == 0 && e.now >= e.spiders.keepUntil
}

func (e *Engine) isShared() bool { return e.opt.Shared || e.now < e.intake.remoteUntil }

// awaitRoom makes the engine step when the documents go back.
func (e *Engine) awaitRoom(due *waiter) {
	if e.spiders.taking == 0 {
		due.after(e.spiders.keepUntil - e.now)
	}
}

// mostAt returns how many documents may be at a spider by the settings and by what it said.
func (e *Engine) mostAt(sp *spider) int {
	if sp.room == noRoomSaid || faulty(FaultSaid) {
		return e.cfg.Spider.MaxInFlight
	}
	return min(sp.room, e.cfg.Spider.MaxInFlight)
}
