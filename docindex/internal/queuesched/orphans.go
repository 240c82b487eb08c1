package queuesched

import "hash/maphash"

// Orphan keeps the host of a URL that a client of GetURLs has and that is being forgotten: nothing on the
// host is given out at any door before the client's lease has ended, or before the client has Reported the
// URL. id and name are as for [Doors.Out], which is still to be followed by its Back. url is anything that
// names the URL.
func (d *Doors) Orphan(id uint32, name, url []byte, until, now int64) {
	no := d.hostOf(d.queues.At(id), name)
	if no == 0 || until <= now {
		return
	}
	h := d.hosts.at(no)
	urls := d.hosts.orphans[no]
	if urls == nil || h.kept <= now {
		urls = map[uint64]struct{}{}
		if d.hosts.orphans == nil {
			d.hosts.orphans = map[uint32]map[uint64]struct{}{}
		}
		d.hosts.orphans[no] = urls
	}
	urls[d.hosts.orphanHash(url)] = struct{}{}
	h.kept = max(h.kept, until)
	d.refreshHost(no, now)
}

// HasOrphans reports whether any URL may be waited for that Reported would be told of.
func (d *Doors) HasOrphans() bool { return len(d.hosts.orphans) > 0 }

// Reported says that a client has reported a URL, named as for Orphan, on the named host.
func (d *Doors) Reported(name, url []byte, now int64) {
	no := d.hosts.find(name)
	urls := d.hosts.orphans[no]
	if no == 0 || urls == nil {
		return
	}
	if delete(urls, d.hosts.orphanHash(url)); len(urls) > 0 {
		return
	}
	delete(d.hosts.orphans, no)
	d.hosts.at(no).kept = 0
	d.refreshHost(no, now)
	d.hosts.release(no, now)
}

// PauseOf is what Pause has said of a host.
func (d *Doors) PauseOf(name []byte) (until, gap int64) {
	if no := d.hosts.find(name); no != 0 {
		h := d.hosts.at(no)
		return h.pause, h.gap
	}
	return 0, 0
}

func (h *hosts) orphanHash(url []byte) uint64 { return maphash.Bytes(h.seed, url) }
