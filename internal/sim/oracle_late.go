package sim

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"urlserver/configs"
)

// late is what an oracle keeps in addition that hears of a daemon in real time: of a line some time after it was
// decided on, of a status before the daemon does, and of settings from before they may be in force until they are for
// sure. Such an oracle complains of what cannot have been right whenever the daemon did it, and of nothing else,
// however slow the machine is:
//
//   - What a daemon does about a status is done after that was said. So a line was decided on after the line before it
//     on its connection, and after so many requests to its host had ended that it may be open: that is its since. It is
//     judged by the most lenient of the settings that may have been in force from then until it was heard of.
//   - The daemon reads its clock before it hears of some of the statuses that it then answers to, but after the lines
//     before those were decided on. So by its clock, on which the gaps are, a line's moment is not before the since of
//     the line that had to end for it: that is its from.
//   - A line is taken to have gone at the earliest moment that from and the gaps allow. It has come too early where that
//     is still ahead.
//   - Where a line was decided on after the last change of settings, all requests to hosts that these have in its group
//     were requests to that, those from before the change, too.
//
// Several spiders may share a host only where one request to it may be open: else its lines may be heard of in
// another order than they were decided on. What hosts learn by themselves is not judged: robots.txt, backing off.
type late struct {
	former  []former
	spiders map[uint32]moment
	settled int // lines since the last change of settings that are judged by what is in force
}

// moment is when a line was decided on at the earliest: really, and by the daemon's clock.
type moment struct {
	since, from time.Duration
}

// former are settings that were in force.
type former struct {
	limits
	until time.Duration // they may still be
}

const forever time.Duration = math.MaxInt64

// changing hears that the daemon is about to be told other settings, and changed that it has taken them over.
func (o *oracle) changing(set limits) {
	o.late.former = append(o.late.former, former{limits: o.set, until: forever})
	o.late.settled = 0
	o.set = set
}

func (o *oracle) changed() {
	o.late.former[len(o.late.former)-1].until = o.now
	for _, h := range o.hosts { // each by itself, whatever the order
		o.rejoin(h)
	}
}

// rejoin notes the group of rules that a host is in, or on its way to, by the last settings.
func (o *oracle) rejoin(h *host) {
	h.join(nil)
	if name := o.set.ruleOf(h.name, h.addr).Group; name != "" {
		h.join(o.group(name))
	}
}

// joined is the earliest moment that the last requests to all hosts allow that are in a group, or on their way to it.
func (o *oracle) joined(g *group) (from time.Duration) {
	for _, h := range o.hosts { // the latest, whatever the order
		if h.to == g && len(h.asked) > 0 {
			from = max(from, h.last+leaveOf(o.inForce(h.asked[len(h.asked)-1]), h.name, h.addr).gap)
		}
	}
	return from
}

// inForce are the settings of which some were in force at each moment from since on.
func (o *oracle) inForce(since time.Duration) []*limits {
	sets := []*limits{&o.set}
	for i := len(o.late.former) - 1; i >= 0 && o.late.former[i].until > since; i-- {
		sets = append(sets, &o.late.former[i].limits)
	}
	return sets
}

// leave is the most that some settings allow for a host, and the group of rules that all of them have it in.
type leave struct {
	gap      time.Duration
	open     int
	inFlight int
	barred   bool
	group    string
}

func leaveOf(sets []*limits, name string, addr netip.Addr) (most leave) {
	for i, set := range sets {
		r := set.ruleOf(name, addr)
		l := leave{gap: time.Duration(set.gapOf(r)), open: set.openOf(r), inFlight: set.inFlight, barred: r.Block, group: r.Group}
		if i == 0 {
			most = l
			continue
		}
		most.gap, most.open, most.inFlight = min(most.gap, l.gap), max(most.open, l.open), max(most.inFlight, l.inFlight)
		if most.barred = most.barred && l.barred; most.group != l.group {
			most.group = ""
		}
	}
	return most
}

// requestLate checks a request for a document that has come to a spider, and returns the group that it is noted for.
func (o *oracle) requestLate(spider uint32, d *document, addr netip.Addr) *group {
	h := d.origin.host
	if own, err := netip.ParseAddr(h.name); err == nil && own != addr {
		o.wrong(RuleAddress, "%s is asked at %v", h.name, addr)
	}
	m := o.late.spiders[spider]
	if n := len(h.asked) - leaveOf(o.inForce(m.since), h.name, addr).open; n >= 0 && n < len(h.ended) {
		m = moment{since: max(m.since, h.ended[n]), from: max(m.from, h.asked[n])}
	}
	h.addr = addr
	sets := o.inForce(m.since)
	may := leaveOf(sets, h.name, addr)
	g := &group{}
	if may.group != "" {
		g = o.group(may.group)
	}
	o.within(may, spider, h, g)
	m.from = max(m.from, h.last+o.hostGap(may.gap, d, addr), g.last+o.groupGap(may.gap, g))
	if len(sets) == 1 {
		o.late.settled++
		m.from = max(m.from, o.together(may, h, g))
	}
	if m.from > o.now {
		o.early(m.from, h, g)
	}
	o.late.spiders[spider] = m
	h.asked, h.batch = append(h.asked, m.since), d.taken
	h.last, g.last, g.since = m.from, m.from, m.since
	o.rejoin(h)
	h.open++
	g.open++
	if h.to != nil {
		h.to.joining++
	}
	return g
}

// together checks a request that was decided on by the last settings, together with all those that these have in its
// group, and returns the earliest moment that they allow.
func (o *oracle) together(may leave, h *host, g *group) (from time.Duration) {
	if may.group == "" {
		return 0
	}
	if g.joining >= may.open {
		o.wrong(RuleOpenGroup, "%s is asked while %d requests to hosts in %v, or on their way to it, are open; %d may be", h.name, g.joining, g.name, may.open)
	}
	return o.joined(g)
}

// hostGap is the gap before a request to a document's host, of which those settings want one that may be in force.
// With none of its documents held, a host is forgotten as soon as it might be asked by settings that were in force since.
func (o *oracle) hostGap(gap time.Duration, d *document, addr netip.Addr) time.Duration {
	h := d.origin.host
	if len(h.asked) == 0 || h.batch == d.taken { // the document was held when the one before it went
		return gap
	}
	return min(gap, leaveOf(o.inForce(h.asked[len(h.asked)-1]), h.name, addr).gap)
}

// groupGap is the same for a group, which may have had no hosts.
func (o *oracle) groupGap(gap time.Duration, g *group) time.Duration {
	for _, set := range o.inForce(g.since) {
		i := slices.IndexFunc(set.rules, func(r configs.HostRule) bool { return r.Group == g.name })
		if i < 0 {
			return 0
		}
		for _, r := range set.rules[i:] {
			if r.Group == g.name {
				gap = min(gap, time.Duration(set.gapOf(r)))
			}
		}
	}
	return gap
}

// within checks all but the gaps of a request.
func (o *oracle) within(may leave, spider uint32, h *host, g *group) {
	if may.barred {
		o.wrong(RuleBarred, "%s is asked, which a rule blocks", h.name)
	}
	if h.open >= may.open {
		o.wrong(RuleOpenHost, "%s is asked while %d requests to it are open; %d may be", h.name, h.open, may.open)
	}
	if g.open >= may.open {
		o.wrong(RuleOpenGroup, "%s is asked while %d requests to %v are open; %d may be", h.name, g.open, g.name, may.open)
	}
	if n := o.spiders[spider].inFlight; n >= may.inFlight {
		o.wrong(RuleInFlight, "spider %d has %d documents; it may have %d", spider, n, may.inFlight)
	}
}

func (o *oracle) early(from time.Duration, h *host, g *group) {
	rule := RuleGapHost
	if g.last > h.last || o.joined(g) == from {
		rule = RuleGapGroup
	}
	o.wrong(rule, "%s, in group %q, is asked %v too early, after %v and %v at the earliest", h.name, g.name, from-o.now, h.last, g.last)
}
