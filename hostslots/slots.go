package hostslots

import (
	"math"
	"time"

	"urlserver/internal/container/timeheap"
)

// Slots holds the documents and decides which may be sent. Use New. It is not safe for concurrent
// use, and must not be copied.
type Slots struct {
	cfg settings
	registry
	table      slotTable
	pacer      pacer
	dispatch   dispatch
	leases     leases
	pools      pools
	crawls     crawlCounts
	moves      moves
	unresolved unresolved
	rejects    rejectList
	sweeper    sweeper
}

// New returns empty slots. Each group counts as requested at time 0.
func New(cfg Config) *Slots {
	s := &Slots{cfg: settings{Config: cfg}}
	s.cfg.complete()
	s.registry.init()
	s.table.init(&s.cfg)
	s.pacer.init(&s.cfg)
	s.dispatch.init(&s.registry)
	s.leases.init(&s.groups)
	s.pools.init()
	s.crawls.init(cfg.CountDocs, cfg.NameCrawls)
	s.moves.init()
	s.unresolved.init(&s.hosts)
	s.rejects.init(&s.registry)
	s.sweeper.init(&s.registry)
	return s
}

// reschedule brings the state of a group up to date after anything about it has changed: its place
// in the ready heaps, its slot or its place in the slot queue, and its lease. A slot that becomes
// free is assigned to the group that waits first.
func (s *Slots) reschedule(now time.Duration, id uint32) {
	s.pacer.now = max(s.pacer.now, now)
	s.updateGroup(now, id)
	s.assignSlots(now)
}

func (s *Slots) rescheduleHost(now time.Duration, hostID uint32) {
	if id := s.hosts.At(hostID).group; id != 0 {
		s.reschedule(now, id)
	}
}

// updateGroup is the part of reschedule that concerns the group alone. A group is in a ready heap
// only while a request to it may be sent, or may be sent once its gap has passed.
func (s *Slots) updateGroup(now time.Duration, id uint32) {
	g := s.groups.At(id)
	if g.users > 0 {
		s.updateCap(id)
	}
	if g.kind == ofNetwork {
		return
	}
	if g.revision != s.cfg.revision {
		s.applySettingsTo(id, g)
	}
	s.updateSlot(now, id, g)
	if s.cfg.Leases {
		s.leases.update(id, g)
	}
	s.updateReady(now, id, g)
	if g.slot != 0 && g.sent == 0 || g.isNotReady || g.hasUsedQuota {
		s.dispatch.setNotReady(id, g, s.isNotReady(now, id, g))
		s.dispatch.setQuotaUsed(id, g, s.hasUsedQuota(g))
	}
}

// updateReady puts a group into the ready heaps or removes it from them.
func (s *Slots) updateReady(now time.Duration, id uint32, g *group) {
	own, docs := g.hasOwn(), g.slot != 0 && g.rotation.head != 0
	if !own && !docs && !g.ownReady {
		s.dispatch.ready.Remove(id)
		return // the ordinary case of a group that waits for the end of a request
	}
	due := s.pacer.groupDue(g)
	if g.users > 0 && g.line.head != 0 && !g.turnAbove { // the hosts in line here go first
		due += s.pacer.gap(&g.pace, s.pacer.groupGap(g))
	}
	may := (g.open() < s.pacer.groupOpen(g) || faulty(FaultConcurrent)) && !g.awaitsHosts() &&
		(!s.cfg.Leases || g.lease.usable())
	// Own requests go first. Until they have left, no document of the group makes the engine fetch
	// another robots.txt.
	docs = docs && may && g.own[FirstTry].head == 0
	s.dispatch.woken = s.dispatch.woken || docs && !s.dispatch.ready.Has(id)
	setReady(&s.dispatch.ready, id, due, now, docs)
	if own || g.ownReady {
		for queue := range g.own {
			setReady(&s.dispatch.ownReady[queue], id, due, now, may && g.own[queue].head != 0)
		}
		g.ownReady = own && may
	}
}

// setReady puts a group into a ready heap or removes it. Its key is the moment at which it is
// due, or now if it has been due for some time. A group in the heap that is due keeps its key, and
// so its place before those that become due later.
func setReady(h *timeheap.Heap, id uint32, due, now time.Duration, in bool) {
	switch {
	case !in:
		h.Remove(id)
	case due > now || !h.Has(id) || h.Due(id) > now:
		h.Set(id, max(due, now))
	}
}

// Tick makes the changes that need no event but the time: it ends blocks and leases, applies
// changed settings, gives the slots of groups that cannot use them to others, and forgets idle
// hosts. It returns Wait.
func (s *Slots) Tick(now time.Duration) (wait time.Duration) {
	s.pacer.now = max(s.pacer.now, now)
	s.endBlocks(now)
	s.expireLeases(now)
	s.applySettings(now)
	s.assignSlots(now)
	s.sweep(now)
	return s.Wait(now)
}

// Wait returns how long until Tick or Overdue has something to do; 0: that takes another event.
func (s *Slots) Wait(now time.Duration) time.Duration {
	next := time.Duration(0)
	if s.cfg.next != 0 {
		next = 1
	}
	if _, due, ok := s.pacer.blocks.Min(); ok {
		next = sooner(next, due-now)
	}
	if _, due, ok := s.leases.ends.Min(); ok {
		next = sooner(next, due-now)
	}
	if _, until, ok := s.leases.deferredReleases.Min(); ok {
		next = sooner(next, until-now)
	}
	if id := s.table.byStatus.head; id != 0 {
		next = sooner(next, s.table.silentAt(id)-now)
		if faulty(FaultSilence) {
			next += time.Second
		}
	}
	if id := s.table.byAge.head; id != 0 && s.cfg.MaxFetch > 0 {
		next = sooner(next, s.table.endlessAt(id)-now)
	}
	_, from, ok := s.dispatch.slotQueue.First()
	if ok && s.dispatch.notReady.head != 0 && from-now > s.cfg.Patience {
		next = sooner(next, from-now-s.cfg.Patience)
	}
	if ok && s.dispatch.quotaUsed.head != 0 && from > now && from < math.MaxInt64 {
		next = sooner(next, from-now)
	}
	return next
}

// sooner returns the shorter of two waits, at least 1; a may be 0 for none.
func sooner(a, b time.Duration) time.Duration {
	b = max(b, 1)
	if a == 0 || b < a {
		return b
	}
	return a
}
