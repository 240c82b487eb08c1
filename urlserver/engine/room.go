package engine

// noRoomSaid is spider.room of a spider that has not said how much it takes.
const noRoomSaid = -1

// setRoom notes that at most so many documents may be at a spider from now on.
func (e *Engine) setRoom(id uint32, sp *spider, n int) {
	sp.room = n
	if n == 0 {
		e.spiders.unreserve(sp.pool, id)
	}
}

// mostAt returns how many documents may be at a spider by the settings and by what it said.
func (e *Engine) mostAt(sp *spider) int {
	if sp.room == noRoomSaid || faulty(faultSaid) {
		return e.cfg.Spider.MaxInFlight
	}
	return min(sp.room, e.cfg.Spider.MaxInFlight)
}
