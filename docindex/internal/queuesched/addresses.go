package queuesched

import (
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/addresses"
)

// hostAddresses makes URL Frontier clients keep the pace of addresses, for queues whose key is
// their host.
type hostAddresses struct {
	of      docindex.Addresses // nil: addresses do not count
	table   *addresses.Table
	queues  []atAddress // by queue
	waiting []uint32    // queues that wait until their look-up may begin, in order
}

// atAddress is the place of a queue at its address. It costs memory only if addresses count.
type atAddress struct {
	no      uint32 // in the table; 0: its address is not known
	waiting bool   // it is in hostAddresses.waiting
}

// SetAddresses makes URL Frontier clients keep the pace of addresses; nil: they do not. It takes
// effect with RefreshSome.
func (d *Scheduler) SetAddresses(of docindex.Addresses, now int64) {
	switch {
	case of == nil:
		d.addresses = hostAddresses{}
		for _, o := range d.hosts.orphans {
			o.atAddress = nil
		}
		return
	case d.addresses.of == nil:
		d.addresses.table = addresses.New(now)
	}
	d.addresses.of = of
}

// at returns the atAddress of a queue.
func (a *hostAddresses) at(id uint32) *atAddress {
	if missing := int(id) - len(a.queues) + 1; missing > 0 {
		a.queues = append(a.queues, make([]atAddress, max(missing, len(a.queues)/2))...)
	}
	return &a.queues[id]
}

// number returns the number that a queue has in the table, or 0.
func (a *hostAddresses) number(id uint32) uint32 {
	if int(id) >= len(a.queues) {
		return 0
	}
	return a.queues[id].no
}

// pacedNumber returns the number in the table of a queue that keeps the pace of an address, or 0.
func (d *Scheduler) pacedNumber(id uint32) uint32 {
	if d.queues.At(id).flags&anyHost != 0 {
		return 0
	}
	return d.addresses.number(id)
}

// KeepsAddresses reports whether URL Frontier clients keep the pace of addresses.
func (d *Scheduler) KeepsAddresses() bool { return d.addresses.of != nil }

// MayLeave reports whether the store may still send clients the URLs that it has taken from a
// queue: the queue's address has not gone to others since.
func (d *Scheduler) MayLeave(id uint32) bool {
	no := d.pacedNumber(id)
	return no == 0 || d.addresses.table.MayLeave(no)
}

// addressNotBefore returns when a queue may be served to clients, by its address and by at, the
// time that all other rules give. Never says that some event has to come first.
func (d *Scheduler) addressNotBefore(id uint32, at, now int64) int64 {
	q, known := d.queues.At(id), d.addresses.at(id)
	switch {
	case q.flags&anyHost != 0:
		if d.hosts.at(q.host).out[FrontierConsumer] == 0 {
			d.forgetAddress(id, now) // URLs that clients got while the queue had one host have ended
		}
		return at
	case at > now && q.out[FrontierConsumer] == 0:
		if known.no != 0 {
			d.addresses.table.Withdraw(known.no)
		}
		return at
	case known.waiting:
		return Never
	}
	// If clients have URLs of it, they count at its address although it is not due.
	name := d.hosts.name(q.host)
	a := d.addresses.of(name)
	switch {
	case at > now && known.no != 0 && (a.State != docindex.AddressKnown || a.Blocked):
		return at
	case a.State == docindex.AddressAwaited:
		return now + max(1, a.Retry)
	case a.State == docindex.AddressBusy:
		known.waiting = true
		d.addresses.waiting = append(d.addresses.waiting, id)
		return Never
	case a.Blocked:
		return now + blockedRetry
	}
	no, moving := d.addresses.table.Bind(known.no, name, &a, now)
	if known.no = no; moving {
		return Never // CountBack refreshes it
	}
	if q.out[FrontierConsumer] > 0 {
		d.addresses.table.Reopen(no)
	}
	if at > now {
		return at
	}
	return d.addresses.table.MayFrom(no, now)
}

// blockedRetry is after how many ms the scheduler looks again at a queue whose address a rule
// blocks: the host may have another address then.
const blockedRetry = 60_000

// takeAddress opens a queue at its address, which may have changed since the queue joined its ring.
// It returns false if the queue may not be served now; then the queue has left its ring.
func (d *Scheduler) takeAddress(id uint32, now int64) bool {
	if d.addresses.of == nil {
		return true
	}
	d.place(id, FrontierConsumer, now)
	if d.queues.At(id).link[FrontierConsumer].level == 0 {
		return false
	}
	no := d.pacedNumber(id)
	return no == 0 || d.addresses.table.Take(no, now)
}

// returnAddress closes a queue at its address if clients have no URL of it, and no removed URL of its
// host.
func (d *Scheduler) returnAddress(id uint32) {
	if no := d.addresses.number(id); no != 0 {
		q := d.queues.At(id)
		if q.out[FrontierConsumer] == 0 && q.flags&serving == 0 && d.hosts.orphans[q.host] == nil {
			d.addresses.table.Return(no)
		}
	}
}

// forgetAddress removes a queue from its address. If the queue is open there, and clients have
// removed URLs of its host, it stays open there until endOrphans.
func (d *Scheduler) forgetAddress(id uint32, now int64) {
	no := d.addresses.number(id)
	if no == 0 {
		return
	}
	d.addresses.queues[id].no = 0
	if o := d.hosts.orphans[d.queues.At(id).host]; o != nil && d.addresses.table.IsOpen(no) {
		d.addresses.table.Withdraw(no)
		o.atAddress = append(o.atAddress, no)
		return
	}
	d.addresses.table.Forget(no, now)
}

// atAddress reports whether a queue has a place among those of its address, or waits for its address
// to be looked up.
func (d *Scheduler) atAddress(id uint32) bool {
	return d.addresses.of != nil && int(id) < len(d.addresses.queues) &&
		d.addresses.queues[id] != atAddress{}
}

// addressFailed reports whether a queue is at an address at which a site has failed lately. The
// site may be the queue's own, and the failure a reason for the address to back off.
func (d *Scheduler) addressFailed(id uint32) bool {
	no := d.addresses.number(id)
	return no != 0 && d.addresses.table.HasFailed(no)
}

// beginLookups begins look-ups for queues that wait for them, as many as may be begun.
func (d *Scheduler) beginLookups(now int64) {
	a := &d.addresses
	for range min(maxAdvance, len(a.waiting)) {
		id := a.waiting[0]
		if d.Exists(id) && a.at(id).waiting {
			if a.of(d.hosts.name(d.queues.At(id).host)).State == docindex.AddressBusy {
				return
			}
			a.at(id).waiting = false
			a.waiting = a.waiting[1:]
			d.place(id, FrontierConsumer, now)
			continue
		}
		a.waiting = a.waiting[1:]
	}
}

// addressWait returns when a queue that is otherwise open may be served to clients, and why not
// before. It changes nothing.
func (d *Scheduler) addressWait(id uint32, now int64) (at int64, reason Reason) {
	no := d.addresses.number(id)
	switch {
	case d.addresses.of == nil || d.queues.At(id).flags&anyHost != 0 ||
		d.queues.At(id).link[FrontierConsumer].level != 0:
		return now, Open
	case no == 0:
		return Never, AddressUnknown
	}
	at, full, _ := d.addresses.table.Wait(no, now)
	switch {
	case full:
		return Never, AddressInUse
	case at > now:
		return at, AddressPaced
	}
	return Never, AddressUnknown
}

// AddressWait returns why the site or the address of a queue holds it back. The address must be known.
func (d *Scheduler) AddressWait(id uint32, now int64) docindex.Wait {
	_, _, why := d.addresses.table.Wait(d.addresses.number(id), now)
	return why
}

// Levels returns the paces of a queue's site and, if it is known, of its address or shared network.
func (d *Scheduler) Levels(id uint32) (site, address docindex.LevelStatus) {
	h := d.hosts.at(d.queues.At(id).host)
	if no := d.addresses.number(id); no != 0 {
		site, address = d.addresses.table.Levels(no)
	} else {
		site.Name = string(d.hosts.name(d.queues.At(id).host))
	}
	site.Gap = max(site.Gap, time.Duration(d.hosts.wantedGap(h))*time.Millisecond)
	site.Backoff = time.Duration(h.backoff) * time.Millisecond
	return site, address
}
