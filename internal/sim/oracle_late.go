package sim

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"urlserver/configs"
)

// late is the additional state of an oracle that watches a daemon in real time. Such an oracle sees
// a line some time after the daemon decided to send it. It sees a status before the daemon does. Of
// a change of settings it knows only that it took place between two moments. It complains only of
// what is wrong at every moment at which the daemon may have done it, so a slow machine causes no
// complaint:
//
//   - The daemon reacts to a status after the spider has sent it. So the daemon decided on a line after it decided on
//     the line before it on the connection, and after enough requests to the host had ended. The later of the two is
//     the line's since. The line is checked against the most lenient of the settings that may have been in force
//     between since and the moment at which the oracle sees the line.
//   - The daemon reads its clock before it receives some of the statuses that it reacts to in the same step, but after
//     it decided on the lines that these statuses end. Gaps count by that clock. So by the daemon's clock, a line was
//     not sent before the since of the line that had to end for it. That is the line's from.
//   - The oracle assumes that a line was sent at the earliest moment that from and the gaps allow. If that moment is
//     in the future, the line was sent too early.
//   - If a line was decided on after the last change of settings, every request to a host that the new settings put
//     into its group counts as a request to the group, also a request from before the change.
//
// Several spiders may share a host only if one request at a time may be open to it. Otherwise the
// oracle may see the host's lines in another order than the daemon decided on them. Delays that
// come from the hosts themselves are not checked: robots.txt and backoff.
type late struct {
	former  []former
	spiders map[uint32]moment
	settled int // lines since the last change of settings that were checked against the new settings only
}

// moment is the earliest moment at which the daemon can have decided on a line: since in real time,
// from by the daemon's clock.
type moment struct {
	since, from time.Duration
}

// former are settings that were in force.
type former struct {
	limits
	until time.Duration // they may be in force until then
}

const forever time.Duration = math.MaxInt64

// changing records that the daemon is about to get other settings; changed records that it has
// applied them.
func (o *oracle) changing(set limits) {
	o.late.former = append(o.late.former, former{limits: o.set, until: forever})
	o.late.settled = 0
	o.set = set
}

func (o *oracle) changed() {
	o.late.former[len(o.late.former)-1].until = o.now
	for _, h := range o.hosts { // the order does not matter
		o.rejoin(h)
	}
}

// rejoin records the rules' group that a host is in, or is to join, by the last settings.
func (o *oracle) rejoin(h *host) {
	h.join(nil)
	if name := o.set.rulingOf(h.name, h.addr).group; name != "" {
		h.join(o.group(name))
	}
}

// joined returns the earliest moment for a request to a group that the last requests to its hosts
// allow, including hosts that are to join it.
func (o *oracle) joined(g *group) (from time.Duration) {
	for _, h := range o.hosts { // the order does not matter for the maximum
		if h.to == g && len(h.requests) > 0 {
			from = max(from, h.last+leaveOf(o.inForce(h.requests[len(h.requests)-1]), h.name, h.addr).siteGap)
		}
	}
	return from
}

// inForce returns all settings that may have been in force at some moment from since on.
func (o *oracle) inForce(since time.Duration) []*limits {
	sets := []*limits{&o.set}
	for i := len(o.late.former) - 1; i >= 0 && o.late.former[i].until > since; i-- {
		sets = append(sets, &o.late.former[i].limits)
	}
	return sets
}

// leave is the most lenient combination of several settings for a host that is the only one at its
// address. group is the rules' group of the host if all of these settings agree on it.
type leave struct {
	gap      time.Duration // of site and address
	siteGap  time.Duration
	open     int // at site and address
	siteOpen int
	inFlight int
	barred   bool
	group    string
}

func leaveOf(sets []*limits, name string, addr netip.Addr) (most leave) {
	for i, set := range sets {
		l := set.alone(name, addr)
		if i == 0 {
			most = l
			continue
		}
		most.gap, most.siteGap = min(most.gap, l.gap), min(most.siteGap, l.siteGap)
		most.open, most.siteOpen = max(most.open, l.open), max(most.siteOpen, l.siteOpen)
		most.inFlight = max(most.inFlight, l.inFlight)
		if most.barred = most.barred && l.barred; most.group != l.group {
			most.group = ""
		}
	}
	return most
}

// alone returns what holds for a host that is the only one at its address.
func (l *limits) alone(name string, addr netip.Addr) leave {
	r := l.rulingOf(name, addr)
	if r.aboveGap == 0 {
		r.aboveGap = l.gap
		if r.raises > 0 {
			r.aboveGap = min(l.gap, r.raises)
		}
	}
	if r.aboveOpen == 0 {
		r.aboveOpen = max(l.concurrent, r.more)
	}
	return leave{gap: time.Duration(max(r.gap, r.aboveGap)), siteGap: time.Duration(r.gap),
		open: min(r.open, r.aboveOpen), siteOpen: r.open, inFlight: l.inFlight, barred: r.block,
		group: r.group}
}

// requestLate checks a request for a document that a spider has received. It returns what the
// request counts for.
func (o *oracle) requestLate(spider uint32, d *document, addr netip.Addr) target {
	h := d.origin.host
	if own, err := netip.ParseAddr(h.name); err == nil && own != addr {
		o.wrong(RuleAddress, "%s is asked at %v", h.name, addr)
	}
	m := o.late.spiders[spider]
	if n := len(h.requests) - leaveOf(o.inForce(m.since), h.name, addr).open; n >= 0 && n < len(h.ended) {
		m = moment{since: max(m.since, h.ended[n]), from: max(m.from, h.requests[n])}
	}
	h.addr = addr
	sets := o.inForce(m.since)
	may := leaveOf(sets, h.name, addr)
	g := &group{}
	if may.group != "" {
		g = o.group(may.group)
	}
	h.where = o.address(addr)
	o.within(may, spider, h, g)
	m.from = max(m.from, h.last+o.hostGap(may.gap, d, addr), g.last+o.groupGap(may.siteGap, g))
	if len(sets) == 1 {
		o.late.settled++
		m.from = max(m.from, o.together(may, h, g))
	}
	if m.from > o.now {
		o.early(m.from, h, g)
	}
	o.late.spiders[spider] = m
	h.requests, h.batch = append(h.requests, m.since), d.taken
	h.last, g.last, g.since = m.from, m.from, m.since
	o.rejoin(h)
	h.open++
	g.open++
	h.where.open++
	if h.to != nil {
		h.to.joining++
	}
	return target{site: &g.level, above: h.where}
}

// together checks a request that was decided on under the last settings, with all requests to hosts
// that these settings put into its group. It returns the earliest moment that these requests allow.
func (o *oracle) together(may leave, h *host, g *group) (from time.Duration) {
	if may.group == "" {
		return 0
	}
	if g.joining >= may.siteOpen {
		o.wrong(RuleOpenSite,
			"%s is asked while %d requests to hosts in %v, or on their way to it, are open; %d may be",
			h.name, g.joining, g.name, may.siteOpen)
	}
	return o.joined(g)
}

// hostGap returns the least gap before a request to the host of d. gap is that of the settings that
// may be in force now. If no document of the host is held, the daemon forgets the host as soon as
// settings that were in force since its last request allow the next one; so their gap is enough,
// too.
func (o *oracle) hostGap(gap time.Duration, d *document, addr netip.Addr) time.Duration {
	h := d.origin.host
	if len(h.requests) == 0 || h.batch == d.taken { // the document was held when the one before it went
		return gap
	}
	return min(gap, leaveOf(o.inForce(h.requests[len(h.requests)-1]), h.name, addr).gap)
}

// groupGap returns the same for a group. If some settings since its last request had no hosts for
// the group, the daemon may have forgotten the group, and the gap is 0.
func (o *oracle) groupGap(gap time.Duration, g *group) time.Duration {
	for _, set := range o.inForce(g.since) {
		i := slices.IndexFunc(set.rules, func(r configs.HostRule) bool { return "group "+r.Group == g.name })
		if i < 0 {
			return 0
		}
		for _, r := range set.rules[i:] {
			if "group "+r.Group == g.name {
				least := min(gapOf(r.PerSec, set.siteGap), gapOf(r.SitePerSec, set.siteGap))
				gap = min(gap, time.Duration(least))
			}
		}
	}
	return gap
}

// within checks everything about a request except the gaps.
func (o *oracle) within(may leave, spider uint32, h *host, g *group) {
	if may.barred {
		o.wrong(RuleBlockedByRule, "%s is asked, which a rule blocks", h.name)
	}
	if h.open >= may.open {
		o.wrong(RuleOpenSite, "%s is asked while %d requests to it are open; %d may be", h.name,
			h.open, may.open)
	}
	if g.open >= may.siteOpen {
		o.wrong(RuleOpenSite, "%s is asked while %d requests to %v are open; %d may be", h.name, g.open,
			g.name, may.siteOpen)
	}
	if n := o.spiders[spider].inFlight; n >= may.inFlight {
		o.wrong(RuleInFlight, "spider %d has %d documents; it may have %d", spider, n, may.inFlight)
	}
}

func (o *oracle) early(from time.Duration, h *host, g *group) {
	o.wrong(RuleGapSite, "%s, in group %q, is asked %v too early, after %v and %v at the earliest",
		h.name, g.name,
		from-o.now, h.last, g.last)
}
