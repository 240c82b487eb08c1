package hostslots

import (
	"math"
	"time"

	"urlserver/internal/container/timeheap"
)

// pacer decides from which moment a request may be sent to a host group, and how many may be open.
// It knows groups by their pace and hosts by what they carry from group to group.
type pacer struct {
	cfg         *settings
	limitCounts map[uint32]limitCounts // of the groups with limits on any host
	blocks      timeheap.Heap          // hosts that the operator blocked, by the end of the block
	cooldowns   timeheap.Heap          // groups without a slot that are not due, by when they are
	lastRequest time.Duration          // to any group that was forgotten
}

func (p *pacer) init(cfg *settings) { p.cfg, p.limitCounts = cfg, map[uint32]limitCounts{} }

// pace is the times and limits of one group.
type pace struct {
	last       time.Duration // last request; 0, the start of the daemon, counts as one
	notBefore  time.Duration // no request before this moment, whatever the gap
	backoff    time.Duration // gap while the group backs off; 0: it does not
	took       time.Duration // duration of the last fetch
	crawlDelay time.Duration // the longest of its hosts
	limits     strictest
	forgotten  time.Duration // the group may have had a request until then, before it was forgotten
	delaying   uint32        // hosts with the longest Crawl-delay
	cause      Cause         // of notBefore
}

// carried is what a host takes along from the groups that it was in to the next one.
type carried struct {
	notBefore   time.Duration // no request before this moment
	lastRequest time.Duration // to any of those groups; 0: none
}

// Cause is the reason for HostView.NotBefore.
type Cause uint8

const (
	Nothing    Cause = iota
	RetryAfter       // a host of the group sent Retry-After
	LastFetch        // the last fetch took long; see Config.DelayFactor
	Moved            // a host of the group carries it from another group
)

// begin sets the pace of a new group.
func (p *pacer) begin(g *pace) { g.forgotten = p.lastRequest }

// forget is called when a group is forgotten.
func (p *pacer) forget(id uint32, g *pace) {
	p.lastRequest = max(p.lastRequest, g.last)
	p.cooldowns.Remove(id)
}

// owed reports whether forgetting a group would shorten a wait.
func (p *pacer) owed(now time.Duration, g *pace) bool {
	return p.due(g) > now || g.backoff > 0 && now < g.last+backoffMemory
}

// requested counts a request to the group at the given moment.
func (g *pace) requested(at time.Duration) { g.last = max(g.last, at) }

// putOff forbids requests before the given moment.
func (g *pace) putOff(until time.Duration, cause Cause) {
	if until > g.notBefore {
		g.notBefore, g.cause = until, cause
	}
}

// ordinaryGap returns the gap by settings and limits alone.
func (p *pacer) ordinaryGap(g *pace) time.Duration {
	l := &g.limits
	if l.concurrent == 0 || faulty(faultLimits) {
		return p.cfg.Gap
	}
	if l.usualGap {
		return max(l.gap, p.cfg.Gap)
	}
	return l.gap
}

// baseGap returns the gap by settings, limits and Crawl-delay.
func (p *pacer) baseGap(g *pace) time.Duration {
	if faulty(faultDelay) {
		return p.ordinaryGap(g)
	}
	return max(p.ordinaryGap(g), g.crawlDelay)
}

// fetchGap returns the gap that the duration of the last fetch asks for.
func (p *pacer) fetchGap(g *pace) time.Duration {
	if p.cfg.DelayFactor == 0 || faulty(faultFair) {
		return 0
	}
	return time.Duration(min(float64(g.took)*p.cfg.DelayFactor, float64(p.cfg.MaxDelay)))
}

// gap returns the least time between two requests to the group.
func (p *pacer) gap(g *pace) time.Duration { return max(p.baseGap(g), g.backoff, p.fetchGap(g)) }

// due returns the moment from which the next request may be sent.
func (p *pacer) due(g *pace) time.Duration {
	switch {
	case faulty(faultGap):
		return g.last + p.gap(g)/2
	case faulty(faultStart) && g.last == 0:
		return g.notBefore
	}
	return max(g.last+p.gap(g), g.notBefore)
}

// maxOpen returns how many requests to the group may be open.
func (p *pacer) maxOpen(g *pace) int {
	l := &g.limits
	if l.concurrent == 0 || faulty(faultLimits) {
		return p.cfg.Concurrent
	}
	if l.usualConcurrent {
		return min(int(l.concurrent), p.cfg.Concurrent)
	}
	return min(int(l.concurrent), p.cfg.MaxConcurrent)
}

// Feedback is what the end of a request says about a host.
type Feedback struct {
	Took       time.Duration // from request to end
	Status     int           // HTTP status; 0: no answer, or not known
	RetryAfter time.Duration // that the host asked for; 0: none
}

// learn adapts the pace to the end of a request. After 429 and 503 the gap doubles, up to
// maxBackoff times the base gap, and is at least Retry-After. Each success halves it.
func (p *pacer) learn(now time.Duration, g *pace, f Feedback) {
	g.took = f.Took
	g.putOff(g.last+p.fetchGap(g), LastFetch)
	retry, base := min(f.RetryAfter, maxRetryAfter), max(p.baseGap(g), time.Millisecond)
	if faulty(faultRetryAfter) {
		retry = 0
	}
	switch {
	case faulty(faultBackoff):
	case f.Status == 429 || f.Status == 503:
		g.backoff = max(min(2*max(base, g.backoff), maxBackoff*base), retry, g.backoff)
		g.putOff(now+retry, RetryAfter)
	case f.Status >= 200 && f.Status < 400:
		g.backoff /= 2
		if g.backoff <= p.baseGap(g) {
			g.backoff = 0
		}
	}
}

// addCrawlDelay is called when a host with this Crawl-delay joins the group; 0: it has none.
func (p *pacer) addCrawlDelay(g *pace, delay time.Duration) {
	switch {
	case delay == 0:
	case delay > g.crawlDelay:
		g.crawlDelay, g.delaying = delay, 1
	case delay == g.crawlDelay:
		g.delaying++
	}
}

// removeCrawlDelay is called when a host with this Crawl-delay leaves the group. If it was the
// last with the longest one, removeCrawlDelay returns true and expects addCrawlDelay for all hosts.
func (p *pacer) removeCrawlDelay(g *pace, delay time.Duration) (again bool) {
	if delay == 0 || delay != g.crawlDelay {
		return false
	}
	if g.delaying--; g.delaying > 0 {
		return false
	}
	g.crawlDelay = 0
	return true
}

// carry is called when a host leaves the group.
func (p *pacer) carry(c *carried, g *pace) {
	c.notBefore, c.lastRequest = max(c.notBefore, p.due(g)), max(c.lastRequest, g.last)
}

// until returns the moment before which a host with these limits may not be requested.
func (p *pacer) until(c *carried, l Limits) time.Duration {
	return max(c.notBefore, c.lastRequest+p.limitedGap(l))
}

// inherit forbids requests to the group for as long as a host that joins it may not be requested.
// The host's last request counts with the gap that is in force now, which may have changed since.
func (p *pacer) inherit(g *pace, c *carried, l Limits) {
	if c.lastRequest > 0 {
		c.notBefore = p.until(c, l)
	}
	g.putOff(c.notBefore, Moved)
}

// inheritForgotten obeys the Crawl-delay of a host that joins the group if the group may have been
// forgotten since its last request. For the gaps of the hosts that it had then, enough time has
// passed.
func (p *pacer) inheritForgotten(g *pace, delay time.Duration) {
	if delay > 0 && g.last < g.forgotten {
		g.putOff(g.forgotten+delay, Moved)
	}
}

// Limits are settings for one host in place of those in Config. The zero value changes nothing.
type Limits struct {
	Gap        time.Duration // between two requests to its group; 0: Config.Gap
	Concurrent int           // open requests to its group; 0: Config.Concurrent
	Blocked    bool          // nothing is sent to it
}

func (p *pacer) limitedGap(l Limits) time.Duration {
	if l.Gap > 0 {
		return l.Gap
	}
	return p.cfg.Gap
}

// strictest is the strictest limits of a group's hosts. The values of Config are not in it but
// are taken when they are needed, so that new settings hold at once.
type strictest struct {
	gap             time.Duration // longest of the hosts with Limits.Gap
	concurrent      int32         // least of those with Limits.Concurrent; 0: no host has limits
	usualGap        bool          // a host has no Limits.Gap: Config.Gap counts, too
	usualConcurrent bool          // a host has no Limits.Concurrent: Config.Concurrent counts, too
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

// addLimits is called when a host with these limits joins group id, which has size hosts then.
func (p *pacer) addLimits(g *pace, id, size uint32, l Limits) {
	counts := p.limitCounts[id]
	if counts == nil {
		if l == (Limits{}) {
			return
		}
		counts = limitCounts{}
		if size > 1 {
			counts[Limits{}] = size - 1
		}
		p.limitCounts[id] = counts
	}
	if counts[l]++; counts[l] == 1 {
		g.limits = counts.strictest()
	}
}

// removeLimits is called when a host with these limits leaves group id.
func (p *pacer) removeLimits(g *pace, id uint32, l Limits) {
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
		g.limits = strictest{}
		return
	}
	g.limits = counts.strictest()
}
