package engine

import (
	"fmt"
	"time"

	"urlserver/internal/container/timeheap"
	"urlserver/urlserver/explain"
)

// spiderPool is the spiders that announced the same spiderid. They get only its documents. Pool 0
// is the spiders that announced none. Documents of a spiderid go to its pool or, while that has no
// spider, to pool 0. Documents without a spiderid go to pool 0.
type spiderPool struct {
	name      string
	connected int           // spiders that have not gone
	ready     timeheap.Heap // spiders that a document may go to, the one that costs least first
	tries     timeheap.Heap // those of them that are idle, by when they are tried again if they are slow

	reserved    uint32        // spider that is kept for suspects; 0: none
	reservedFor uint32        // of those
	since       time.Duration // since when they wait for it
}

// maxPools bounds the spiderids that are told apart. Documents of further ones count as documents
// without one.
const maxPools = 1024

// JoinPool puts a spider into the pool of a spiderid: it gets only documents of that from now on.
// Its documents in flight stay.
func (e *Engine) JoinPool(id uint32, spiderID string) {
	sp := e.spiders.byID[id]
	no := e.poolNo([]byte(spiderID))
	if no == 0 {
		no = uint32(len(e.spiders.pools.all)) // beyond maxPools: the spiders' number bounds such pools
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

// handshakeGrace is how long a new spider has for announcing its spiderid before it gets
// documents.
const handshakeGrace = 100 * time.Millisecond

// AwaitHandshake delays the first documents of a spider that has just connected until it has sent
// a line, or handshakeGrace has passed.
func (e *Engine) AwaitHandshake(id uint32) {
	sp := e.spiders.byID[id]
	e.holdUntil(id, sp, max(sp.notBefore, e.now+handshakeGrace))
}

// endDelays lets spiders get documents whose delay has passed.
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

// poolNo returns the number of a spiderid's pool, which it makes on first sight; 0 if the spiderid
// is empty or there are too many pools.
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

// unusedPool returns a pool without spiders and documents, or 0.
func (e *Engine) unusedPool() uint32 {
	for no := 1; no < len(e.spiders.pools.all); no++ {
		if e.spiders.pools.all[no].connected == 0 && !e.slots.Pool(poolQueue(uint32(no), false)).HasDocs() &&
			!e.slots.Pool(poolQueue(uint32(no), true)).HasDocs() && !e.slots.Pool(heldQueue(uint32(no))).HasDocs() {
			return uint32(no)
		}
	}
	return 0
}

// poolFor returns the pool whose spiders get the documents of pool no now.
func (ss *spiders) poolFor(no uint32) *spiderPool {
	if ss.pools.all[no].connected > 0 {
		return &ss.pools.all[no]
	}
	return &ss.pools.all[0]
}

// resumeSuspended resumes documents that waited for a spider of their pool, as many as its spiders
// have room for.
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

// room returns how many more documents the spiders of a pool may have.
func (e *Engine) room(c *spiderPool) (room int) {
	c.ready.Each(func(id uint32, _ time.Duration) bool {
		room += max(0, e.allowance(e.spiders.byID[id])-e.spiders.byID[id].inFlight)
		return true
	})
	return room
}

// mayResume reports whether resumeSuspended would resume any document.
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

// lacksSpider returns which documents of a host wait for a spider of their pool while other spiders
// have room.
func (e *Engine) lacksSpider(host uint32) (why explain.Reason) {
	if e.spiders.withRoom == 0 {
		return explain.Reason{}
	}
	e.slots.Host(host).Pools(func(queue uint32) {
		no := spiderPoolOf(queue)
		switch name := e.spiders.pools.all[no].name; {
		case why.Kind == explain.None && forHeld(queue):
			why = because(explain.GivenBack)
		case why.Kind == explain.None && forSuspects(queue) && e.slots.Pool(queue).Suspended():
			why = because(explain.SuspectsWait)
		case why.Kind != explain.None || forSuspects(queue) || forHeld(queue) || e.spiders.poolFor(no).ready.Len() > 0:
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
