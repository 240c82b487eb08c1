package engine

import (
	"fmt"
	"time"

	"urlserver/internal/container/timeheap"
	"urlserver/urlserver/explain"
)

// spiderPool is the spiders that have said the same spiderid and get only its documents; crew 0 is those that have said none.
// Documents of a spiderid go to its crew and, while nobody is in that, to crew 0; those without one go to crew 0.
type spiderPool struct {
	name      string
	connected int           // spiders that have not gone
	ready     timeheap.Heap // spiders that a document may go to, the one that costs least first
	tries     timeheap.Heap // those of them that are idle, by when they are tried again if they are slow

	reserved    uint32        // spider that is kept for suspects; 0: none
	reservedFor uint32        // of those
	since       time.Duration // they wait for it
}

// maxPools bounds the spiderids that are told apart. Documents of further ones count as without one.
const maxPools = 1024

// JoinPool says that a spider wants documents of a spiderid, and nothing else. What it has in flight goes on.
func (e *Engine) JoinPool(id uint32, spiderID string) {
	sp := e.spiders.byID[id]
	no := e.poolNo([]byte(spiderID))
	if no == 0 {
		no = uint32(len(e.spiders.pools.all)) // as many spiders as there may be can each have one
		e.spiders.pools.add(no, spiderID)
	}
	if sp.gone {
		return
	}
	e.spiders.removeReady(id, sp)
	e.spiders.unreserve(sp.pool, id)
	from := sp.pool
	sp.pool = no
	e.countConnected(from, -1)
	e.countConnected(no, 1)
	e.holdUntil(id, sp, sp.peer.until)
}

// handshakeGrace is how long a spider that has dialled in has for saying whose documents it wants before it gets any.
const handshakeGrace = 100 * time.Millisecond

// AwaitHandshake has a spider that has just connected get nothing until it has said something, or has had time to.
func (e *Engine) AwaitHandshake(id uint32) {
	sp := e.spiders.byID[id]
	e.holdUntil(id, sp, max(sp.notBefore, e.now+handshakeGrace))
}

// endDelays ends the wait for what spiders say first, and for what came of those before them.
func (e *Engine) endDelays(due *waiter) {
	for {
		id, at, ok := e.spiders.delayed.Min()
		if !ok {
			return
		}
		if at > e.now {
			due.after(at - e.now)
			return
		}
		e.holdUntil(id, e.spiders.byID[id], 0)
	}
}

// poolNo is the number of a spiderid's crew, made on first sight; 0 where it is empty, or one too many.
func (e *Engine) poolNo(spiderID []byte) uint32 {
	if len(spiderID) == 0 {
		return 0
	}
	if no, ok := e.spiders.pools.byName[string(spiderID)]; ok {
		return no
	}
	no := uint32(len(e.spiders.pools.all))
	if no > maxPools {
		if no = e.unusedPool(); no == 0 {
			return 0
		}
	}
	e.spiders.pools.add(no, string(spiderID))
	return no
}

func (p *pools) add(no uint32, spiderID string) {
	if int(no) == len(p.all) {
		p.all = append(p.all, spiderPool{})
	}
	delete(p.byName, p.all[no].name)
	p.all[no].name = spiderID
	p.byName[spiderID] = no
}

// unusedPool is one without spiders and documents, or 0.
func (e *Engine) unusedPool() uint32 {
	for no := 1; no < len(e.spiders.pools.all); no++ {
		if e.spiders.pools.all[no].connected == 0 && !e.slots.Pool(poolQueue(uint32(no), false)).HasDocs() && !e.slots.Pool(poolQueue(uint32(no), true)).HasDocs() {
			return uint32(no)
		}
	}
	return 0
}

// poolFor is the crew that documents for crew no go to now.
func (ss *spiders) poolFor(no uint32) *spiderPool {
	if ss.pools.all[no].connected > 0 {
		return &ss.pools.all[no]
	}
	return &ss.pools.all[0]
}

// resumeSuspended lets documents go on that waited for a spider of their crew, as many as those have room for.
func (e *Engine) resumeSuspended(budget *int) {
	if !e.slots.AnySuspended() {
		return
	}
	e.spiders.pools.turn++ // so that none always comes first
	inStead := e.room(&e.spiders.pools.all[0])
	for i := range e.spiders.pools.all {
		no := uint32((e.spiders.pools.turn + i) % len(e.spiders.pools.all))
		queue := poolQueue(no, false)
		if !e.slots.Pool(queue).Suspended() {
			continue
		}
		room := &inStead
		if c := e.spiders.poolFor(no); c != &e.spiders.pools.all[0] {
			own := e.room(c)
			room = &own
		}
		for ; *room > 0 && *budget > 0 && e.slots.Pool(queue).Resume(e.now); *room-- {
			*budget--
		}
	}
}

// room is how many more documents the spiders of a crew may have.
func (e *Engine) room(c *spiderPool) (room int) {
	c.ready.Each(func(id uint32, _ time.Duration) bool {
		room += max(0, e.allowance(e.spiders.byID[id])-e.spiders.byID[id].inFlight)
		return true
	})
	return room
}

// mayResume reports whether unpark would let anything go on.
func (e *Engine) mayResume() bool {
	if !e.slots.AnySuspended() {
		return false
	}
	for no := range e.spiders.pools.all {
		if e.slots.Pool(poolQueue(uint32(no), false)).Suspended() && e.spiders.poolFor(uint32(no)).ready.Len() > 0 {
			return true
		}
	}
	return false
}

// lacksSpider returns which documents of a host wait for a spider of their pool while other spiders have room.
func (e *Engine) lacksSpider(host uint32) (why explain.Reason) {
	if e.spiders.withRoom == 0 {
		return explain.Reason{}
	}
	e.slots.Host(host).Pools(func(queue uint32) {
		no := spiderPoolOf(queue)
		switch name := e.spiders.pools.all[no].name; {
		case why.Kind == explain.None && forSuspects(queue) && e.slots.Pool(queue).Suspended():
			why = because(explain.SuspectsWait)
		case why.Kind != explain.None || forSuspects(queue) || e.spiders.poolFor(no).ready.Len() > 0:
		case no == 0:
			why = because(explain.UnnamedWait)
		case e.spiders.pools.all[no].connected > 0:
			why = because(explain.PoolFull, fmt.Sprintf("%q", name), name)
		default:
			why = because(explain.PoolEmpty, fmt.Sprintf("%q", name), name)
		}
	})

	return why
}
