package queuesched

import (
	"bytes"
	"hash/maphash"
	"time"

	"urlserver/docindex"
	"urlserver/internal/container/arena"
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"
	"urlserver/internal/container/timeheap"
)

// host has the state that the queues on a host share. Only one consumer at a time has URLs of a host.
type host struct {
	name          arena.Ref
	nameLen       uint16
	overridden    bool              // it has an override
	queues        uint32            // the queues with it as key, linked by hostNext
	out           [consumers]uint32 // URLs in transit, by consumer
	rejectRound   uint32            // the last round that rejected it
	pausedUntil   int64             // clients get no URL of it before, ms
	restoredUntil int64             // the slots get no URL of it before, ms; from before a restart
	// when clients were last given a URL of it, or other daemons returned their last one
	frontierLast  int64
	orphanedUntil int64  // nobody gets a URL of it before; see Orphan
	gap           int64  // that it wants between two requests, ms; 0: not known
	ruleGap       uint32 // by the rules of ruleEdition
	ruleEdition   uint32
	backoff       uint32 // gap that clients' reports ask for, ms; 0: none
	taken         uint32 // URLs that were handed out since all were back the last time
}

type hosts struct {
	seed        maphash.Seed
	list        slab.Slab[host]
	names       arena.Arena
	byName      hashindex.Index
	reject      map[string]struct{} // rejected names of hosts that are not in memory
	releaseAt   timeheap.Heap       // hosts by when to release them; a Duration is ms since 1970
	slotGap     int64               // between two requests of the slots to a host, ms
	overrides   map[uint32]hostOverride
	orphans     map[uint32]*hostOrphans             // by host
	orphanEnds  timeheap.Heap                       // hosts with orphans by orphanedUntil; a Duration is ms since 1970
	rules       func(host []byte) docindex.HostRule // nil: there are none
	ruleEdition uint32                              // changes with the rules
	backingOff  int                                 // hosts with a backoff
	round       uint32                              // when it wraps, a host may wait one round more
	released    func(id uint32)                     // is called before a host is removed
	cold        Cold                                // keeps the state of hosts not in memory; nil: nothing does
}

// wantedGap returns the gap in ms that a host has: the largest of those that the slots have
// learned, that clients' reports ask for, and that a rule sets; 0: none.
func (h *hosts) wantedGap(one *host) int64 {
	gap := max(one.gap, int64(one.backoff))
	if rule := h.gapByRule(one); rule != barred {
		gap = max(gap, rule)
	}
	return gap
}

// gapNotBefore returns when a host may be requested again after a client or another daemon had URLs
// of it.
func (h *hosts) gapNotBefore(one *host, consumer Consumer) int64 {
	gap := h.wantedGap(one)
	if consumer == SlotConsumer {
		gap = max(gap, h.slotGap)
	}
	return max(one.orphanedUntil, after(one.frontierLast, gap))
}

// GapEnd returns when the gap of a queue's host ends, counted from when clients or other daemons
// had URLs of the host; 0: they had none.
func (d *Scheduler) GapEnd(id uint32) int64 {
	q := d.queues.At(id)
	h := d.hosts.at(q.host)
	if q.flags&anyHost != 0 || h.frontierLast == 0 {
		return 0
	}
	return d.hosts.gapNotBefore(h, FrontierConsumer)
}

// releaseDue releases the hosts whose waiting time is over.
func (h *hosts) releaseDue(now int64) {
	for range maxAdvance {
		id, at, ok := h.releaseAt.Min()
		if !ok || int64(at) > now {
			return
		}
		h.releaseAt.Remove(id)
		h.release(id, now)
	}
}

var dot = []byte(".")

// trimDot returns a host name without its final dot. The name "." stays.
func trimDot(name []byte) []byte {
	if len(name) == len(dot) {
		return name
	}
	return bytes.TrimSuffix(name, dot)
}

func (h *hosts) init(seed maphash.Seed) { h.seed, h.overrides = seed, map[uint32]hostOverride{} }

func (h *hosts) at(id uint32) *host { return h.list.At(id) }

func (h *hosts) name(id uint32) []byte {
	one := h.list.At(id)
	return h.names.Bytes(one.name, int(one.nameLen))
}

func (h *hosts) hash(name []byte) uint32 { return uint32(maphash.Bytes(h.seed, name) >> 32) }

// find returns the host with a name, or 0. A final dot makes no difference. If the store of cold
// queues keeps state of the host, find adds the host for as long as that state matters.
func (h *hosts) find(name []byte) uint32 {
	id := h.lookup(name)
	if id != 0 || h.cold == nil || len(name) == 0 {
		return id
	}
	name = trimDot(name)
	if k, ok := h.cold.FindHost(name); ok {
		id = h.add(name)
		h.recall(id, &k)
		h.releaseAt.Set(id, time.Duration(max(k.Paused, k.Restored)))
	}
	return id
}

// lookup returns the host with a name that is in memory, or 0.
func (h *hosts) lookup(name []byte) uint32 {
	name = trimDot(name)
	return h.byName.Find(h.hash(name), func(id uint32) bool {
		one := h.list.At(id)
		return string(h.names.Bytes(one.name, int(one.nameLen))) == string(name)
	})
}

// open is find, and adds the host if there is none.
func (h *hosts) open(name []byte) uint32 {
	if id := h.lookup(name); id != 0 {
		return id
	}
	name = trimDot(name)
	id := h.add(name)
	if h.cold != nil {
		if k, ok := h.cold.FindHost(name); ok {
			h.recall(id, &k)
		}
	}
	return id
}

// add adds a host. Its name has no final dot.
func (h *hosts) add(name []byte) uint32 {
	id := h.list.New()
	ref, room := h.names.New(len(name))
	copy(room, name)
	*h.list.At(id) = host{name: ref, nameLen: uint16(len(name))}
	if _, rejected := h.reject[string(name)]; rejected {
		h.list.At(id).rejectRound = h.round
	}
	h.byName.Add(h.hash(name), id)
	return id
}

// unlink removes a queue from its host's list.
func (h *hosts) unlink(id, queue uint32, d *Scheduler, now int64) {
	one := h.list.At(id)
	next := d.queues.At(queue).hostNext
	if one.queues == queue {
		one.queues = next
		h.release(id, now)
		return
	}
	for q := one.queues; q != 0; {
		record := d.queues.At(q)
		if record.hostNext == queue {
			record.hostNext = next
			return
		}
		q = record.hostNext
	}
}

// release removes a host once nothing about it matters any more: at once, or when its last waiting
// time is over.
func (h *hosts) release(id uint32, now int64) {
	one := h.list.At(id)
	if one.queues != 0 || one.out != [consumers]uint32{} || h.orphans[id] != nil {
		return // endOrphans calls it again
	}
	o := h.overrides[id]
	if o.delay > 0 {
		return
	}
	if until := max(one.pausedUntil, one.restoredUntil, o.blocked, h.gapNotBefore(one, SlotConsumer),
		h.gapNotBefore(one, FrontierConsumer)); until > now {
		h.releaseAt.Set(id, time.Duration(until))
		return
	}
	if one.backoff > 0 {
		h.backingOff--
	}
	h.releaseAt.Remove(id)
	delete(h.overrides, id)
	h.released(id)
	h.byName.Remove(h.hash(h.names.Bytes(one.name, int(one.nameLen))), id)
	h.names.Free(one.name, int(one.nameLen))
	h.list.Free(id)
}

// BeginRound begins a round of NextForSlots that leaves out the hosts with these names.
func (d *Scheduler) BeginRound(names []string) {
	d.hosts.round++
	d.hosts.reject = nil
	for _, name := range names {
		if id := d.hosts.lookup([]byte(name)); id != 0 {
			d.hosts.at(id).rejectRound = d.hosts.round
			continue
		}
		if d.hosts.reject == nil {
			d.hosts.reject = map[string]struct{}{}
		}
		d.hosts.reject[string(trimDot([]byte(name)))] = struct{}{}
	}
}

func (d *Scheduler) rejected(id uint32) bool { return d.hosts.at(id).rejectRound == d.hosts.round }

// PauseHost records what the slots have learned of a host: URL Frontier clients get no URL of it
// before until, and then with a gap in ms between two URLs; gap 0: the host has no gap of its own.
func (d *Scheduler) PauseHost(name []byte, until, gap, now int64) {
	if len(name) == 0 {
		return
	}
	d.pauseHost(d.hosts.open(name), until, gap, now)
}

// PauseHostOf is PauseHost for the host of a URL in a queue. name is its host; it is used only if
// the queue's key is not the host, and may be empty.
func (d *Scheduler) PauseHostOf(queue uint32, name []byte, until, gap, now int64) {
	if id := d.hostOf(d.queues.At(queue), name); id != 0 {
		d.pauseHost(id, until, gap, now)
	}
}

func (d *Scheduler) pauseHost(id uint32, until, gap, now int64) {
	h := d.hosts.at(id)
	h.pausedUntil, h.gap = max(h.pausedUntil, until), gap
	d.refreshHost(id, now)
	d.hosts.release(id, now)
}

// RestorePause is PauseHost for what the slots learned before a restart. The pause then holds for
// the slots, too, since they have forgotten it.
func (d *Scheduler) RestorePause(name []byte, until, gap, now int64) {
	if len(name) == 0 {
		return
	}
	h := d.hosts.at(d.hosts.open(name))
	h.restoredUntil = max(h.restoredUntil, until)
	d.PauseHost(name, until, gap, now)
}

// HostAvailable reports whether the rules about a host allow to hand out a URL on it now. The store
// asks this for URLs of queues whose key is not the host.
func (d *Scheduler) HostAvailable(name []byte, consumer Consumer, now int64) bool {
	id := d.hosts.find(name)
	if d.barredByRule(id, name, consumer) {
		return false
	}
	if id != 0 {
		return d.hostAvailable(id, consumer, now)
	}
	_, rejected := d.hosts.reject[string(trimDot(name))]
	return consumer == FrontierConsumer || !rejected
}

func (d *Scheduler) hostAvailable(id uint32, consumer Consumer, now int64) bool {
	h := d.hosts.at(id)
	if d.hosts.overrideNotBefore(id, consumer) > now || d.isTurnOver(h, consumer, now) ||
		d.keptUntil(id, consumer) > now {
		return false
	}
	if consumer == FrontierConsumer {
		return !h.outElsewhere(FrontierConsumer) && h.pausedUntil <= now &&
			d.hosts.gapNotBefore(h, FrontierConsumer) <= now
	}
	return !h.outElsewhere(consumer) && !d.rejected(id) && h.restoredUntil <= now &&
		d.hosts.gapNotBefore(h, SlotConsumer) <= now
}

// outElsewhere reports whether another consumer has URLs of a host in transit.
func (h *host) outElsewhere(consumer Consumer) bool {
	for other, n := range h.out {
		if n > 0 && Consumer(other) != consumer {
			return true
		}
	}
	return false
}

// CountOut counts a URL that was handed out. Of its domain's budget it counts as the given number
// of pages. name is its host; it is used only if the queue's key is not the host, and may be empty.
// The caller then refreshes the queue, by EndTurn or EndServing.
func (d *Scheduler) CountOut(id uint32, name []byte, consumer Consumer, pages uint32, now int64) {
	q := d.queues.At(id)
	q.out[consumer.queueSide()]++
	q.turn = d.moment(now)
	switch consumer {
	case SlotConsumer:
		d.countAhead(q, 1)
	case RemoteConsumer:
		q.remote++
	}
	d.charge(q, consumer.queueSide(), pages, now)
	if no := d.pacedNumber(id); no != 0 && consumer == FrontierConsumer {
		d.addresses.table.Gave(no, now+1) // now is rounded down
	}
	if no := d.hostOf(q, name); no != 0 {
		h := d.hosts.at(no)
		d.hosts.releaseAt.Remove(no)
		if consumer == FrontierConsumer {
			h.frontierLast = max(now, after(h.frontierLast, d.hosts.wantedGap(h)))
		}
		if h.overridden {
			d.hosts.noteRequest(no, now)
			if q.host == no {
				d.moveToTail(id)
			}
		}
		d.took(no, h, consumer)
		if h.out[consumer]++; h.out[consumer] == 1 || consumer == FrontierConsumer &&
			(h.gap > 0 || h.backoff > 0 || h.overridden || d.hosts.rules != nil) {
			d.refreshOthers(no, id, now)
		}
	}
}

// CountBack counts a URL that was handed out to a consumer and is no longer in transit.
func (d *Scheduler) CountBack(id uint32, name []byte, consumer Consumer, now int64) {
	q := d.queues.At(id)
	q.out[consumer.queueSide()]--
	q.turn = d.moment(now)
	d.returnAddress(id)
	if consumer != FrontierConsumer {
		q.served[SlotConsumer] = now
		d.noteRoom(q)
	}
	switch consumer {
	case SlotConsumer:
		d.countAhead(q, -1)
	case RemoteConsumer:
		q.remote--
	}
	d.uncapQueue(id)
	if no := d.hostOf(q, name); no != 0 {
		h := d.hosts.at(no)
		if consumer != FrontierConsumer {
			d.hosts.noteRequest(no, now)
		}
		if h.out[consumer]--; h.out[consumer] == 0 {
			if consumer == RemoteConsumer {
				h.frontierLast = max(h.frontierLast, now) // they may have requested it just now
			}
			d.keep(no, h, consumer, now)
			d.refreshHost(no, now)
			d.hosts.release(no, now)
			if q.flags&anyHost == 0 {
				return // it is one of the host's queues
			}
		}
	}
	d.Refresh(id, now)
}

// hostOf returns the host of a URL in a queue, or 0 if it has none.
func (d *Scheduler) hostOf(q *queue, name []byte) uint32 {
	switch {
	case q.flags&anyHost == 0:
		return q.host
	case len(name) == 0:
		return 0
	}
	return d.hosts.open(name)
}

// refreshHost refreshes all queues of a host.
func (d *Scheduler) refreshHost(id uint32, now int64) { d.refreshOthers(id, 0, now) }

// refreshOthers refreshes all queues of a host but one.
func (d *Scheduler) refreshOthers(id, but uint32, now int64) {
	for q := d.hosts.at(id).queues; q != 0; q = d.queues.At(q).hostNext {
		if q != but {
			d.Refresh(q, now)
		}
	}
}
