package engine

import (
	"fmt"
	"time"

	"urlserver/internal/container/timeheap"
	"urlserver/urlserver/explain"
)

// crew is the spiders that have said the same spiderid and get only its documents; crew 0 is those that have said none.
// Documents of a spiderid go to its crew and, while nobody is in that, to crew 0; those without one go to crew 0.
type crew struct {
	name   string
	linked int           // spiders that have not gone
	ready  timeheap.Heap // spiders that a document may go to, the one that costs least first
	tries  timeheap.Heap // those of them that are idle, by when they are tried again if they are slow

	reserved uint32        // spider that is kept for suspects; 0: none
	lane     uint32        // of those
	since    time.Duration // they wait for it
}

// maxCrews bounds the spiderids that are told apart. Documents of further ones count as without one.
const maxCrews = 1024

// Enlist says that a spider wants documents of a spiderid, and nothing else. What it has in flight goes on.
func (e *Engine) Enlist(id uint32, spiderID string) {
	sp := e.spiders[id]
	no := e.crewNo([]byte(spiderID))
	if no == 0 {
		no = uint32(len(e.crews)) // as many spiders as there may be can each have one
		e.addCrew(no, spiderID)
	}
	if sp.gone {
		return
	}
	e.noRoom(id, sp)
	e.unreserve(sp.crew, id)
	from := sp.crew
	sp.crew = no
	e.link(from, -1)
	e.link(no, 1)
	e.holdUntil(id, sp, sp.peer.until)
}

// hello is how long a spider that has dialled in has for saying whose documents it wants before it gets any.
const hello = 100 * time.Millisecond

// Await has a spider that has just connected get nothing until it has said something, or has had time to.
func (e *Engine) Await(id uint32) {
	sp := e.spiders[id]
	e.holdUntil(id, sp, max(sp.from, e.now+hello))
}

// welcome ends the wait for what spiders say first, and for what came of those before them.
func (e *Engine) welcome(due *waiter) {
	for {
		id, at, ok := e.greeters.Min()
		if !ok {
			return
		}
		if at > e.now {
			due.after(at - e.now)
			return
		}
		e.holdUntil(id, e.spiders[id], 0)
	}
}

// crewNo is the number of a spiderid's crew, made on first sight; 0 where it is empty, or one too many.
func (e *Engine) crewNo(spiderID []byte) uint32 {
	if len(spiderID) == 0 {
		return 0
	}
	if no, ok := e.crewByName[string(spiderID)]; ok {
		return no
	}
	no := uint32(len(e.crews))
	if no > maxCrews {
		if no = e.unusedCrew(); no == 0 {
			return 0
		}
	}
	e.addCrew(no, string(spiderID))
	return no
}

func (e *Engine) addCrew(no uint32, spiderID string) {
	if int(no) == len(e.crews) {
		e.crews = append(e.crews, crew{})
	}
	delete(e.crewByName, e.crews[no].name)
	e.crews[no].name = spiderID
	e.crewByName[spiderID] = no
}

// unusedCrew is one without spiders and documents, or 0.
func (e *Engine) unusedCrew() uint32 {
	for no := 1; no < len(e.crews); no++ {
		if e.crews[no].linked == 0 && !e.slots.Pool(laneOf(uint32(no), false)).HasDocs() && !e.slots.Pool(laneOf(uint32(no), true)).HasDocs() {
			return uint32(no)
		}
	}
	return 0
}

// crewFor is the crew that documents for crew no go to now.
func (e *Engine) crewFor(no uint32) *crew {
	if e.crews[no].linked > 0 {
		return &e.crews[no]
	}
	return &e.crews[0]
}

// unpark lets documents go on that waited for a spider of their crew, as many as those have room for.
func (e *Engine) unpark(budget *int) {
	if !e.slots.AnySuspended() {
		return
	}
	e.crewTurn++ // so that none always comes first
	inStead := e.room(&e.crews[0])
	for i := range e.crews {
		no := uint32((e.crewTurn + i) % len(e.crews))
		lane := laneOf(no, false)
		if !e.slots.Pool(lane).Suspended() {
			continue
		}
		room := &inStead
		if c := e.crewFor(no); c != &e.crews[0] {
			own := e.room(c)
			room = &own
		}
		for ; *room > 0 && *budget > 0 && e.slots.Pool(lane).Resume(e.now); *room-- {
			*budget--
		}
	}
}

// room is how many more documents the spiders of a crew may have.
func (e *Engine) room(c *crew) (room int) {
	c.ready.Each(func(id uint32, _ time.Duration) bool {
		room += max(0, e.allowance(e.spiders[id])-e.spiders[id].inFlight)
		return true
	})
	return room
}

// mayUnpark reports whether unpark would let anything go on.
func (e *Engine) mayUnpark() bool {
	if !e.slots.AnySuspended() {
		return false
	}
	for no := range e.crews {
		if e.slots.Pool(laneOf(uint32(no), false)).Suspended() && e.crewFor(uint32(no)).ready.Len() > 0 {
			return true
		}
	}
	return false
}

// lacks returns which documents of a host wait for a spider of their pool while other spiders have room.
func (e *Engine) lacks(host uint32) (why explain.Reason) {
	if e.roomy == 0 {
		return explain.Reason{}
	}
	e.slots.Host(host).Pools(func(lane uint32) {
		no := crewOf(lane)
		switch name := e.crews[no].name; {
		case why.Kind == explain.None && forSuspects(lane) && e.slots.Pool(lane).Suspended():
			why = because(explain.SuspectsWait)
		case why.Kind != explain.None || forSuspects(lane) || e.crewFor(no).ready.Len() > 0:
		case no == 0:
			why = because(explain.UnnamedWait)
		case e.crews[no].linked > 0:
			why = because(explain.PoolFull, fmt.Sprintf("%q", name), name)
		default:
			why = because(explain.PoolEmpty, fmt.Sprintf("%q", name), name)
		}
	})

	return why
}
