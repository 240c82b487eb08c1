package queuesched

import (
	"math"

	"urlserver/docindex"
)

// SetRules has rules hold from now on; nil: there are none. RefreshSome then puts them in force.
func (d *Doors) SetRules(of func(host []byte) docindex.HostRule) {
	d.hosts.rules = of
	d.hosts.edition++
}

// barred is the gap of hosts that a rule bars.
const barred = math.MaxUint32

// ruled is the gap, ms, that a rule names for a host, or barred.
func (h *hosts) ruled(one *host) int64 {
	if h.rules == nil {
		return 0
	}
	if one.edition != h.edition {
		one.edition, one.ruled = h.edition, inShort(h.rules(h.names.Bytes(one.name, int(one.nameLen))))
	}
	return int64(one.ruled)
}

func inShort(r docindex.HostRule) uint32 {
	if r.Barred {
		return barred
	}
	return uint32(min(r.Gap, barred-1))
}

// bars reports whether a rule keeps a host from a door; id is 0 where that is not known.
func (d *Doors) bars(id uint32, name []byte, door Door) bool {
	switch {
	case door != Calls || d.hosts.rules == nil:
		return false
	case id == 0:
		return d.hosts.rules(bare(name)).Barred
	}
	return d.hosts.ruled(d.hosts.at(id)) == barred
}
