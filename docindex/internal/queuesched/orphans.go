package queuesched

import (
	"hash/maphash"
	"time"
)

// hostOrphans has the removed URLs of a host that clients have.
type hostOrphans struct {
	urls      map[uint64]struct{} // their hashes
	atAddress []uint32            // dropped queues that are open at their address, by number in the table
}

// Orphan blocks the host of a URL that is being removed while a URL Frontier client has it: no
// consumer gets a URL of the host before the client's lease ends or the client reports the URL, and
// the queue stays open at its address. id and name are as for [Scheduler.CountOut]; CountBack still
// has to follow. url identifies the URL.
func (d *Scheduler) Orphan(id uint32, name, url []byte, until, now int64) {
	no := d.hostOf(d.queues.At(id), name)
	if no == 0 || until <= now {
		return
	}
	h, o := d.hosts.at(no), d.hosts.orphans[no]
	if o == nil {
		if o = (&hostOrphans{urls: map[uint64]struct{}{}}); d.hosts.orphans == nil {
			d.hosts.orphans = map[uint32]*hostOrphans{}
		}
		d.hosts.orphans[no] = o
	}
	o.urls[d.hosts.orphanHash(url)] = struct{}{}
	h.orphanedUntil = max(h.orphanedUntil, until)
	d.hosts.orphanEnds.Set(no, time.Duration(h.orphanedUntil))
	d.refreshHost(no, now)
}

// HasOrphans reports whether any orphan is left.
func (d *Scheduler) HasOrphans() bool { return len(d.hosts.orphans) > 0 }

// Reported records that a client has reported an orphan. name and url are as for Orphan.
func (d *Scheduler) Reported(name, url []byte, now int64) {
	no := d.hosts.find(name)
	o := d.hosts.orphans[no]
	if no == 0 || o == nil {
		return
	}
	if delete(o.urls, d.hosts.orphanHash(url)); len(o.urls) == 0 {
		d.endOrphans(no, now)
	}
}

// endDueOrphans ends the blocks of hosts whose orphans' leases have ended.
func (d *Scheduler) endDueOrphans(now int64) {
	for range maxAdvance {
		no, at, ok := d.hosts.orphanEnds.Min()
		if !ok || int64(at) > now {
			return
		}
		d.endOrphans(no, now)
	}
}

// endOrphans ends the block of a host, and closes its queues at their address: clients have none of
// its removed URLs any more.
func (d *Scheduler) endOrphans(no uint32, now int64) {
	o := d.hosts.orphans[no]
	delete(d.hosts.orphans, no)
	d.hosts.orphanEnds.Remove(no)
	for _, at := range o.atAddress {
		d.addresses.table.Forget(at, now)
	}
	h := d.hosts.at(no)
	h.orphanedUntil = 0
	for id := h.queues; id != 0; id = d.queues.At(id).hostNext {
		d.returnAddress(id)
	}
	d.refreshHost(no, now)
	d.hosts.release(no, now)
}

// HostPause returns what PauseHost recorded of a host, and the gap that Answered asks for.
func (d *Scheduler) HostPause(name []byte) (until, gap, backoff int64) {
	if no := d.hosts.find(name); no != 0 {
		h := d.hosts.at(no)
		return h.pausedUntil, h.gap, int64(h.backoff)
	}
	return 0, 0, 0
}

func (h *hosts) orphanHash(url []byte) uint64 { return maphash.Bytes(h.seed, url) }
