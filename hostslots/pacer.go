package hostslots

import (
	"math"
	"time"

	"urlserver/internal/container/slab"
	"urlserver/internal/container/timeheap"
)

// pacer decides from which moment a request may be sent to a site, to an address and to a shared
// network, and how many requests may be open.
type pacer struct {
	cfg         *settings
	now         time.Duration // the latest time that a caller has passed
	extras      slab.Slab[extra]
	limits      slab.Slab[hostLimits]  // the different limits of hosts: few, as a rule gives many hosts the same
	limitsNos   map[Limits]uint32      // their numbers there
	limitCounts map[uint32]limitCounts // of the groups with limits on any host
	failures    map[uint32]*failures   // of the addresses at which sites failed lately
	blocks      timeheap.Heap          // hosts that the operator blocked, by the end of the block
	cooldowns   timeheap.Heap          // groups without a slot that are not due, by when they are
	levels      [Levels]LevelCounts
	backoffs    backoffs
}

func (p *pacer) init(cfg *settings) {
	p.cfg, p.limitCounts, p.failures = cfg, map[uint32]limitCounts{}, map[uint32]*failures{}
	p.limitsNos = map[Limits]uint32{}
	p.backoffs = newBackoffs(cfg.Backoffs)
}

// pace has the times from which the next request to a site, an address or a shared network is
// computed. Only sites have took.
type pace struct {
	last      time.Duration // last request; 0, the start of the daemon, counts as one
	notBefore time.Duration // no request before this moment, whatever the gap
	took      time.Duration // duration of the last fetch
	extra     uint32        // in pacer.extras; 0: it has none
	cause     Cause         // of notBefore
}

// extra is the gaps that few sites, addresses and networks have.
type extra struct {
	backoff    time.Duration // while it backs off; 0: it does not
	crawlDelay time.Duration // only of sites; of a site of several hosts the longest one
}

func (p *pacer) extra(of *pace) extra {
	if of.extra == 0 {
		return extra{}
	}
	return *p.extras.At(of.extra)
}

func (p *pacer) setExtra(of *pace, x extra) {
	switch {
	case x == extra{} && of.extra == 0:
	case x == extra{}:
		p.extras.Free(of.extra)
		of.extra = 0
	default:
		if of.extra == 0 {
			of.extra = p.extras.New()
		}
		*p.extras.At(of.extra) = x
	}
}

func (p *pacer) setBackoff(of *pace, gap time.Duration) {
	p.setExtra(of, extra{backoff: gap, crawlDelay: p.extra(of).crawlDelay})
}

func (p *pacer) setCrawlDelay(of *pace, gap time.Duration) {
	p.setExtra(of, extra{backoff: p.extra(of).backoff, crawlDelay: gap})
}

// Cause is the reason for LevelView.NotBefore.
type Cause uint8

const (
	Nothing     Cause = iota
	RetryAfter        // the site sent Retry-After
	LastFetch         // the last fetch took long; see Config.DelayFactor
	LeftShared        // the address was on a shared network; see Place.LeftShared
	BeforeStart       // the pause began before the daemon started; see Host.RestorePause
)

// requested counts a request at the given moment.
func (p *pace) requested(at time.Duration) { p.last = max(p.last, at) }

// putOff forbids requests before the given moment.
func (p *pace) putOff(until time.Duration, cause Cause) {
	if until > p.notBefore {
		p.notBefore, p.cause = until, cause
	}
}

// merge makes a pace at least as strict as another one. The Crawl-delay is not a part of that.
func (p *pacer) merge(of, with *pace) {
	of.requested(with.last)
	of.putOff(with.notBefore, with.cause)
	p.setBackoff(of, max(p.extra(of).backoff, p.extra(with).backoff))
	of.took = max(of.took, with.took)
}

// failed doubles the gap, up to maxBackoff times the base gap. The gap is at least atLeast.
func (p *pacer) failed(of *pace, base, atLeast time.Duration) {
	base = max(base, time.Millisecond)
	backoff := p.extra(of).backoff
	p.setBackoff(of, max(min(2*max(base, backoff), maxBackoff*base), atLeast, backoff))
}

// succeeded halves the gap.
func (p *pacer) succeeded(of *pace, base time.Duration) {
	if of.extra == 0 {
		return // the ordinary case
	}
	backoff := p.extra(of).backoff / 2
	if backoff <= base {
		backoff = 0
	}
	p.setBackoff(of, backoff)
}

// gap returns the least time between two requests. ordinary is the gap by settings and limits.
func (p *pacer) gap(of *pace, ordinary time.Duration) time.Duration {
	return max(p.baseGap(of, ordinary), p.extra(of).backoff, p.fetchGap(of))
}

// baseGap returns the gap by settings, limits and Crawl-delay.
func (p *pacer) baseGap(of *pace, ordinary time.Duration) time.Duration {
	if faulty(FaultDelay) {
		return ordinary
	}
	return max(ordinary, p.extra(of).crawlDelay)
}

// fetchGap returns the gap that the duration of the last fetch asks for.
func (p *pacer) fetchGap(of *pace) time.Duration {
	if of.took == 0 || p.cfg.DelayFactor == 0 || faulty(FaultFair) {
		return 0
	}
	return time.Duration(min(float64(of.took)*p.cfg.DelayFactor, float64(p.cfg.MaxDelay)))
}

// due returns the moment from which the next request may be sent.
func (p *pacer) due(of *pace, ordinary time.Duration) time.Duration {
	switch {
	case faulty(FaultGap):
		return of.last + p.gap(of, ordinary)/2
	case faulty(FaultStart) && of.last == 0:
		return of.notBefore
	}
	return max(of.last+p.gap(of, ordinary), of.notBefore)
}

// owed reports whether forgetting a pace would shorten a wait.
func (p *pacer) owed(now time.Duration, of *pace, ordinary time.Duration) bool {
	return p.due(of, ordinary) > now || p.extra(of).backoff > 0 && now < of.last+backoffMemory
}

// Feedback is what the end of a request says about a site.
type Feedback struct {
	Took       time.Duration // from request to end
	Status     int           // HTTP status; 0: no answer, or not known
	RetryAfter time.Duration // that the site asked for; 0: none
}

func (f *Feedback) overloaded() bool { return f.Status == 429 || f.Status == 503 }
func (f *Feedback) success() bool    { return f.Status >= 200 && f.Status < 400 }

// learn adapts the pace of a site to the end of a request. After 429 and 503 the gap doubles and is
// at least Retry-After. Each success halves it. Retry-After with another status, from 300 on, puts
// off the next request.
func (p *pacer) learn(now time.Duration, of *pace, ordinary time.Duration, f *Feedback) {
	of.took = f.Took
	of.putOff(of.last+p.fetchGap(of), LastFetch)
	retry, base := min(f.RetryAfter, maxRetryAfter), p.baseGap(of, ordinary)
	if faulty(FaultRetryAfter) {
		retry = 0
	}
	switch {
	case faulty(FaultBackoff):
	case f.overloaded():
		p.failed(of, base, retry)
		of.putOff(now+retry, RetryAfter)
		p.levels[SiteLevel].Backoffs++
		if retry > 0 {
			p.levels[SiteLevel].RetryAfters++
		}
	case f.success():
		p.succeeded(of, base)
	}
	if retry > 0 && f.Status >= 300 && !f.overloaded() {
		of.putOff(now+retry, RetryAfter)
	}
}

// siteGap returns the ordinary gap of a host that is a site by itself.
func (p *pacer) siteGap(h *host) time.Duration {
	gap := p.cfg.SiteGap
	if of := p.limitsOf(h).Gap; of > 0 && !faulty(FaultLimits) {
		gap = of
	}
	if faulty(FaultSiteGap) {
		gap /= 2
	}
	return gap
}

// siteOpen returns how many requests to a host that is a site by itself may be open.
func (p *pacer) siteOpen(h *host) int {
	switch {
	case faulty(FaultSiteOpen):
		return math.MaxInt
	case h.limits != 0 && p.limitsOf(h).Concurrent > 0 && !faulty(FaultLimits):
		return p.limitsOf(h).Concurrent
	}
	return p.cfg.SiteConcurrent
}

func (p *pacer) siteDue(h *host) time.Duration { return p.due(&h.site, p.siteGap(h)) }

// groupGap returns the ordinary gap of a group.
func (p *pacer) groupGap(g *group) time.Duration {
	l := &g.limits
	switch {
	case !g.limited && g.kind == ofAddress:
		return p.cfg.Gap // the ordinary case
	case g.kind == ofNetwork:
		return g.cap.Gap
	case faulty(FaultLimits):
		return p.cfg.Gap
	case g.kind == ofSite && l.concurrent == 0:
		return p.cfg.SiteGap
	case g.kind == ofSite && l.usualGap:
		return max(l.gap, p.cfg.SiteGap)
	case g.kind == ofSite:
		return l.gap
	case g.cap.Gap > 0:
		return g.cap.Gap
	case l.concurrent == 0 || l.usualGap:
		return p.cfg.Gap
	}
	return min(l.gap, p.cfg.Gap)
}

// groupOpen returns how many requests to a group may be open.
func (p *pacer) groupOpen(g *group) int {
	l := &g.limits
	switch {
	case !g.limited && g.kind == ofAddress:
		return p.cfg.Concurrent // the ordinary case
	case g.kind == ofNetwork:
		return g.cap.Concurrent
	case faulty(FaultLimits):
		return p.cfg.Concurrent
	case g.kind == ofSite && l.concurrent == 0:
		return min(p.cfg.SiteConcurrent, p.cfg.MaxConcurrent)
	case g.kind == ofSite && l.usualConcurrent:
		return min(int(l.concurrent), p.cfg.SiteConcurrent, p.cfg.MaxConcurrent)
	case g.kind == ofSite:
		return min(int(l.concurrent), p.cfg.MaxConcurrent)
	case g.cap.Concurrent > 0:
		return min(g.cap.Concurrent, p.cfg.MaxConcurrent)
	case l.concurrent == 0 || l.usualConcurrent:
		return p.cfg.Concurrent
	}
	return min(max(int(l.concurrent), p.cfg.Concurrent), p.cfg.MaxConcurrent)
}

// groupDue returns the moment from which a request to a group may be sent, as far as its pace is
// concerned.
func (p *pacer) groupDue(g *group) time.Duration { return p.due(&g.pace, p.groupGap(g)) }

// addCrawlDelay is called when a host with this Crawl-delay joins a site; 0: it has none.
func (p *pacer) addCrawlDelay(g *group, delay time.Duration) {
	switch {
	case g.kind != ofSite || delay == 0:
	case delay > p.extra(&g.pace).crawlDelay:
		p.setCrawlDelay(&g.pace, delay)
		g.delaying = 1
	case delay == p.extra(&g.pace).crawlDelay:
		g.delaying++
	}
}

// removeCrawlDelay is called when a host with this Crawl-delay leaves a site. If it was the last
// with the longest one, removeCrawlDelay returns true and expects addCrawlDelay for all hosts.
func (p *pacer) removeCrawlDelay(g *group, delay time.Duration) (again bool) {
	if g.kind != ofSite || delay == 0 || delay != p.extra(&g.pace).crawlDelay {
		return false
	}
	if g.delaying--; g.delaying > 0 {
		return false
	}
	p.setCrawlDelay(&g.pace, 0)
	return true
}

// Limits are settings for the site of one host in place of those in Config. The zero value changes
// nothing.
type Limits struct {
	Gap        time.Duration // between two requests to the site; 0: Config.SiteGap
	Concurrent int           // open requests to the site; 0: Config.SiteConcurrent
	Blocked    bool          // nothing is sent to the host
	Raises     bool          // the address is allowed as much if all its hosts are; see AddressLimits
}

// hostLimits is limits, and the number of hosts that have them. setLimits removes it with the last of these.
type hostLimits struct {
	Limits
	hosts uint32
}

// limitsOf returns the limits of a host.
func (p *pacer) limitsOf(h *host) Limits {
	if h.limits == 0 {
		return Limits{}
	}
	return p.limits.At(h.limits).Limits
}

// setLimits sets the limits of a host.
func (p *pacer) setLimits(h *host, l Limits) {
	old := h.limits
	h.limits = p.limitsNo(l)
	if old == 0 {
		return
	}
	if was := p.limits.At(old); was.hosts > 1 {
		was.hosts--
	} else {
		delete(p.limitsNos, was.Limits)
		p.limits.Free(old)
	}
}

// limitsNo returns the number of limits, for which it counts one more host; 0: the zero Limits.
func (p *pacer) limitsNo(l Limits) uint32 {
	if l == (Limits{}) {
		return 0
	}
	no := p.limitsNos[l]
	if no == 0 {
		no = p.limits.New()
		p.limits.At(no).Limits, p.limitsNos[l] = l, no
	}
	p.limits.At(no).hosts++
	return no
}

// AddressLimits are settings for one address in place of those in Config. A field that is 0 has the
// value of Config. If all known hosts of the address have Limits.Raises, the address has the pace of
// the slowest of them instead, where that is faster.
type AddressLimits struct {
	Gap        time.Duration // between two requests to the address
	Concurrent int           // open requests to the address
}

// strictest combines the limits of a group's hosts; of an address, those with Raises. The values of
// Config are not in it: groupGap and groupOpen read them, so that new settings hold at once.
type strictest struct {
	gap             time.Duration // longest of the hosts with Limits.Gap
	concurrent      int32         // least of those with Limits.Concurrent; 0: no host has limits
	usualGap        bool          // a host has no Limits.Gap: Config's counts, too
	usualConcurrent bool          // a host has no Limits.Concurrent: Config's counts, too
}

// limitCounts is how many hosts of a group have which limits.
type limitCounts map[Limits]uint32

func (counts limitCounts) strictest() strictest {
	s := strictest{concurrent: math.MaxInt32}
	for l := range counts { // in any order
		s.gap = max(s.gap, l.Gap)
		s.usualGap = s.usualGap || l.Gap == 0
		if l.Concurrent > 0 {
			s.concurrent = min(s.concurrent, int32(min(l.Concurrent, math.MaxInt32)))
		} else {
			s.usualConcurrent = true
		}
	}
	return s
}

// limitsFor returns the part of a host's limits that counts for its group.
func limitsFor(g *group, l Limits) Limits {
	if g.kind == ofNetwork || g.kind == ofAddress && !l.Raises {
		return Limits{}
	}
	return Limits{Gap: l.Gap, Concurrent: l.Concurrent}
}

// addLimits is called when a host with these limits has joined group id, or the groups below it.
func (p *pacer) addLimits(g *group, id uint32, l Limits) {
	l = limitsFor(g, l)
	counts := p.limitCounts[id]
	if counts == nil {
		if l == (Limits{}) {
			return
		}
		counts = limitCounts{}
		if size := g.size + g.users; size > 1 {
			counts[Limits{}] = size - 1
		}
		p.limitCounts[id] = counts
	}
	if counts[l]++; counts[l] == 1 {
		g.setLimits(counts.strictest())
	}
}

// removeLimits is called when a host with these limits leaves group id, or the groups below it.
func (p *pacer) removeLimits(g *group, id uint32, l Limits) {
	l = limitsFor(g, l)
	counts := p.limitCounts[id]
	if counts == nil {
		return
	}
	if counts[l]--; counts[l] > 0 {
		return
	}
	delete(counts, l)
	if len(counts) == 0 || len(counts) == 1 && counts[Limits{}] > 0 {
		delete(p.limitCounts, id)
		g.setLimits(strictest{})
		return
	}
	g.setLimits(counts.strictest())
}
