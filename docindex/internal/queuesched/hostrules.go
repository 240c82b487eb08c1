package queuesched

import (
	"math"

	"urlserver/docindex"
)

// SetRules sets the rules of hosts; nil: there are none. They take effect with RefreshSome.
func (d *Scheduler) SetRules(of func(host []byte) docindex.HostRule) {
	d.hosts.rules = of
	d.hosts.ruleEdition++
}

// barred is the ruleGap of hosts that a rule bars.
const barred = math.MaxUint32

// gapByRule returns the gap in ms that a rule sets for a host, or barred.
func (h *hosts) gapByRule(one *host) int64 {
	if h.rules == nil {
		return 0
	}
	if one.ruleEdition != h.ruleEdition {
		one.ruleEdition, one.ruleGap = h.ruleEdition, inShort(h.rules(h.names.Bytes(one.name, int(one.nameLen))))
	}
	return int64(one.ruleGap)
}

func inShort(r docindex.HostRule) uint32 {
	if r.Barred {
		return barred
	}
	return uint32(min(r.Gap, barred-1))
}

// barredByRule reports whether a rule bars a host from a consumer; id is 0 if the host is unknown.
func (d *Scheduler) barredByRule(id uint32, name []byte, consumer Consumer) bool {
	switch {
	case consumer != FrontierConsumer || d.hosts.rules == nil:
		return false
	case id == 0:
		return d.hosts.rules(trimDot(name)).Barred
	}
	return d.hosts.gapByRule(d.hosts.at(id)) == barred
}
