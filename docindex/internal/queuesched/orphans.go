package queuesched

import "hash/maphash"

// Orphan blocks the host of a URL that is being removed while a URL Frontier client has it: no
// consumer is given anything of the host before the client's lease ends or the client reports the
// URL. id and name are as for [Scheduler.CountOut]; CountBack still has to follow. url identifies
// the URL.
func (d *Scheduler) Orphan(id uint32, name, url []byte, until, now int64) {
	no := d.hostOf(d.queues.At(id), name)
	if no == 0 || until <= now {
		return
	}
	h := d.hosts.at(no)
	urls := d.hosts.orphans[no]
	if urls == nil || h.orphanedUntil <= now {
		urls = map[uint64]struct{}{}
		if d.hosts.orphans == nil {
			d.hosts.orphans = map[uint32]map[uint64]struct{}{}
		}
		d.hosts.orphans[no] = urls
	}
	urls[d.hosts.orphanHash(url)] = struct{}{}
	h.orphanedUntil = max(h.orphanedUntil, until)
	d.refreshHost(no, now)
}

// HasOrphans reports whether any orphan is left.
func (d *Scheduler) HasOrphans() bool { return len(d.hosts.orphans) > 0 }

// Reported records that a client has reported an orphan. name and url are as for Orphan.
func (d *Scheduler) Reported(name, url []byte, now int64) {
	no := d.hosts.find(name)
	urls := d.hosts.orphans[no]
	if no == 0 || urls == nil {
		return
	}
	if delete(urls, d.hosts.orphanHash(url)); len(urls) > 0 {
		return
	}
	delete(d.hosts.orphans, no)
	d.hosts.at(no).orphanedUntil = 0
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
