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

// host is what queues on the same host share: a host is worked on through one door at a time.
type host struct {
	name    arena.Ref
	nameLen uint16
	ordered bool        // an order is in force on it
	queues  uint32      // those that have it for a key, linked by hostNext
	out     [all]uint32 // URLs in transit, by door
	mark    uint32      // the round that left it out last
	pause   int64       // calls do not ask it before, ms
	before  int64       // slots do not, ms: those before a restart had learned it
	called  int64       // calls were given a URL of it last, or others had the last of theirs
	kept    int64       // nobody does before: clients have URLs of it that were forgotten; see Orphan
	gap     int64       // that it wants between two requests, ms; 0: nothing is known
	ruled   uint32      // as rules of that edition have it
	edition uint32
}

type hosts struct {
	seed    maphash.Seed
	list    slab.Slab[host]
	names   arena.Arena
	byName  hashindex.Index
	reject  map[string]struct{} // names left out in this round that are not known
	linger  timeheap.Heap       // hosts to be released then; a Duration stands for ms since 1970
	slotGap int64               // of the slots, between two requests to a host, ms
	orders  map[uint32]order
	orphans map[uint32]map[uint64]struct{}      // by host: URLs, hashed, that clients have and that were forgotten
	rules   func(host []byte) docindex.HostRule // nil: there are none
	edition uint32                              // of the rules
	round   uint32                              // after 2^32 of them an old mark may make a host wait one round more
}

// free is when a host that calls were given, or have still, or others had, may be asked again through a door.
func (h *hosts) free(one *host, door Door) int64 {
	gap := one.gap
	if door == Slots {
		gap = max(gap, h.slotGap)
	}
	if rule := h.ruled(one); rule != barred {
		gap = max(gap, rule)
	}
	return max(one.kept, after(one.called, gap))
}

// sweep releases hosts that were only waited for.
func (h *hosts) sweep(now int64) {
	for range maxAdvance {
		id, at, ok := h.linger.Min()
		if !ok || int64(at) > now {
			return
		}
		h.linger.Remove(id)
		h.release(id, now)
	}
}

var dot = []byte(".")

// bare is a name without the dot that may end it. A key that is but a dot is its own name.
func bare(name []byte) []byte {
	if len(name) == len(dot) {
		return name
	}
	return bytes.TrimSuffix(name, dot)
}

func (h *hosts) init(seed maphash.Seed) { h.seed, h.orders = seed, map[uint32]order{} }

func (h *hosts) at(id uint32) *host { return h.list.At(id) }

func (h *hosts) hash(name []byte) uint32 { return uint32(maphash.Bytes(h.seed, name) >> 32) }

// find returns the host of that name, or 0. The dot that ends a name that is complete makes no other host of it.
func (h *hosts) find(name []byte) uint32 {
	name = bare(name)
	return h.byName.Find(h.hash(name), func(id uint32) bool {
		one := h.list.At(id)
		return string(h.names.Bytes(one.name, int(one.nameLen))) == string(name)
	})
}

// open is find, and makes the host where there is none.
func (h *hosts) open(name []byte) uint32 {
	if id := h.find(name); id != 0 {
		return id
	}
	name = bare(name)
	id := h.list.New()
	ref, room := h.names.New(len(name))
	copy(room, name)
	*h.list.At(id) = host{name: ref, nameLen: uint16(len(name))}
	h.byName.Add(h.hash(name), id)
	return id
}

// unlink takes a queue out of its host's list.
func (h *hosts) unlink(id, queue uint32, d *Doors, now int64) {
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

// release forgets a host of which nothing is known any more that matters, now or when it does no more.
func (h *hosts) release(id uint32, now int64) {
	one := h.list.At(id)
	if one.queues != 0 || one.out != [all]uint32{} {
		return
	}
	o := h.orders[id]
	if o.delay > 0 {
		return
	}
	if until := max(one.pause, o.blocked, h.free(one, Slots), h.free(one, Calls)); until > now {
		h.linger.Set(id, time.Duration(until))
		return
	}
	h.linger.Remove(id)
	delete(h.orders, id)
	delete(h.orphans, id)
	h.byName.Remove(h.hash(h.names.Bytes(one.name, int(one.nameLen))), id)
	h.names.Free(one.name, int(one.nameLen))
	h.list.Free(id)
}

// Reject begins a round that leaves out the hosts with these names.
func (d *Doors) Reject(names []string) {
	d.hosts.round++
	d.hosts.reject = nil
	for _, name := range names {
		if id := d.hosts.find([]byte(name)); id != 0 {
			d.hosts.at(id).mark = d.hosts.round
			continue
		}
		if d.hosts.reject == nil {
			d.hosts.reject = map[string]struct{}{}
		}
		d.hosts.reject[string(bare([]byte(name)))] = struct{}{}
	}
}

func (d *Doors) rejected(id uint32) bool { return d.hosts.at(id).mark == d.hosts.round }

// Pause tells what the slots have learned of a host: calls do not ask it before a time, and then only after a gap, ms,
// each time; 0 is no gap of its own.
func (d *Doors) Pause(name []byte, until, gap, now int64) {
	if len(name) == 0 {
		return
	}
	id := d.hosts.open(name)
	h := d.hosts.at(id)
	h.pause, h.gap = max(h.pause, until), gap
	d.refreshHost(id, now)
	d.hosts.release(id, now)
}

// Remember is Pause for what slots learned before a restart. Those of now know nothing of it: they are held to it, too.
func (d *Doors) Remember(name []byte, until, gap, now int64) {
	if len(name) == 0 {
		return
	}
	h := d.hosts.at(d.hosts.open(name))
	h.before = max(h.before, until)
	d.Pause(name, until, gap, now)
}

// HostFree reports whether a URL on the named host may be given out at a door, as far as its host goes. It is asked
// for URLs of queues that are not named after one host.
func (d *Doors) HostFree(name []byte, door Door, now int64) bool {
	id := d.hosts.find(name)
	if d.bars(id, name, door) {
		return false
	}
	if id != 0 {
		return d.hostFree(id, door, now)
	}
	_, rejected := d.hosts.reject[string(bare(name))]
	return door == Calls || !rejected
}

func (d *Doors) hostFree(id uint32, door Door, now int64) bool {
	h := d.hosts.at(id)
	if d.hosts.allowed(id, door) > now {
		return false
	}
	if door == Calls {
		return !h.outElsewhere(Calls) && h.pause <= now && d.hosts.free(h, Calls) <= now
	}
	return !h.outElsewhere(door) && !d.rejected(id) && h.before <= now && d.hosts.free(h, Slots) <= now
}

// outElsewhere reports whether URLs of a host are in transit through another door.
func (h *host) outElsewhere(door Door) bool {
	for other, n := range h.out {
		if n > 0 && Door(other) != door {
			return true
		}
	}
	return false
}

// Out counts a URL that has gone out at a door, on the named host, which is looked at only where the queue's key
// does not tell, and may be empty.
func (d *Doors) Out(id uint32, name []byte, door Door, now int64) {
	q := d.queues.At(id)
	q.out[door.side()]++
	if no := d.hostOf(q, name); no != 0 {
		h := d.hosts.at(no)
		d.hosts.linger.Remove(no)
		if door == Calls {
			h.called = now
		}
		if h.ordered {
			d.hosts.noteAsked(no, now)
			if q.host == no {
				d.toTail(id)
			}
		}
		if h.out[door]++; h.out[door] == 1 || door == Calls && (h.gap > 0 || h.ordered || d.hosts.rules != nil) {
			d.refreshHost(no, now)
		}
	}
}

// Back counts a URL that went out at a door and is no longer in transit.
func (d *Doors) Back(id uint32, name []byte, door Door, now int64) {
	q := d.queues.At(id)
	q.out[door.side()]--
	if door != Calls {
		q.served[Slots] = now
	}
	d.unpark(id)
	if no := d.hostOf(q, name); no != 0 {
		h := d.hosts.at(no)
		if door != Calls {
			d.hosts.noteAsked(no, now)
		}
		if h.out[door]--; h.out[door] == 0 {
			if door == Lent {
				h.called = now // they may have asked it just now
			}
			d.refreshHost(no, now)
			d.hosts.release(no, now)
		}
	}
	d.Refresh(id, now)
}

// hostOf is the host of a URL in a queue; 0: it has none.
func (d *Doors) hostOf(q *queue, name []byte) uint32 {
	switch {
	case q.flags&anyHost == 0:
		return q.host
	case len(name) == 0:
		return 0
	}
	return d.hosts.open(name)
}

// refreshHost looks again at all queues of a host.
func (d *Doors) refreshHost(id uint32, now int64) {
	for q := d.hosts.at(id).queues; q != 0; q = d.queues.At(q).hostNext {
		d.Refresh(q, now)
	}
}
