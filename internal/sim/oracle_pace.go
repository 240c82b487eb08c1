package sim

import (
	"slices"
	"time"
)

const (
	backoffMost   = 64
	retryMost     = time.Hour
	backoffMemory = 24 * time.Hour
	failingTime   = time.Minute // in which the failures of maxFailing sites make their address back off
	maxFailing    = 3
)

// request checks and records a request to a host in group g. since is the earliest moment at which
// the daemon may have decided on it.
func (o *oracle) request(h *host, g *group, since time.Duration) target {
	o.mayAsk(h, since)
	r := o.set.rulingOf(h.name, h.addr)
	t := target{site: &h.level, above: h.where}
	joining, delay := 0, h.wants(since)
	if g.kind == ofRule {
		t.site, joining, delay = &g.level, g.joining, g.slowest(since)
		r.gap, r.open = o.strictest(g)
	}
	if h.where == nil {
		t.above = o.network(r)
	} else {
		r.aboveGap, r.aboveOpen = o.raised(h.where)
	}
	if t.site.open+joining >= r.open {
		o.wrong(RuleOpenSite, "%s is asked while %d requests to %v are open, and %d to "+
			"hosts that are to join it; "+
			"%d may be", h.name, t.site.open, t.site.name, joining, r.open)
	}
	if t.above.open+t.above.nearing >= r.aboveOpen {
		o.wrong(t.above.rule(RuleOpenAddress, RuleOpenNetwork),
			"%s is asked while %d requests to %v are open, and %d to hosts that are to be there; "+
				"%d may be", h.name, t.above.open, t.above.name, t.above.nearing, r.aboveOpen)
	}
	if r.block && o.ruledAt <= since {
		o.wrong(RuleBlockedByRule, "%s at %v is asked, which a rule blocks since %v", h.name,
			h.addr, o.ruledAt)
	}
	o.pace(h, t, r, delay)
	if o.service != nil {
		t.site.work += max(time.Duration(r.gap), delay, t.site.backoff, o.fair(t.site), ordinary)
		t.above.work += max(time.Duration(r.aboveGap), t.above.backoff, ordinary)
	}
	o.began(h, t)
	return t
}

// began records a request.
func (o *oracle) began(h *host, t target) {
	h.over = t.above
	levels := [3]*level{t.site, &t.above.level, &h.level}
	for i, l := range levels {
		if i == 2 && l == t.site {
			break
		}
		l.open++
		l.asked, l.last = true, o.now
	}
}

// rule returns the rule for an address or for a shared network.
func (g *group) rule(address, network Rule) Rule {
	if g.kind == ofNetwork {
		return network
	}
	return address
}

func (o *oracle) mayAsk(h *host, since time.Duration) {
	for reason, from := range o.disabledSince {
		if from >= 0 && from <= since {
			o.wrong(RuleDisabled, "%s is asked, but since %v the daemon is %s", h.name, from,
				[]string{"paused", "under back-pressure", "stopped"}[reason])
		}
	}
	if from, until := h.blocked[0], h.blocked[1]; from <= since && o.now < until {
		o.wrong(RuleBlocked, "%s is asked, but is blocked from %v until %v", h.name, from, until)
	}
}

// pace checks the gaps. r has the gaps of the settings, delay is the site's Crawl-delay.
func (o *oracle) pace(h *host, t target, r ruling, delay time.Duration) {
	site, above := t.site, t.above
	sinceSite, sinceAbove := o.now-site.last, o.now-above.last
	rule := func(of *level, ordinary Rule) Rule {
		if !of.asked {
			return RuleStart
		}
		return ordinary
	}
	switch {
	case float64(sinceAbove) < r.aboveGap:
		o.wrong(rule(&above.level, above.rule(RuleGapAddress, RuleGapNetwork)),
			"%s is asked at %v, %v after %v; the gap is %v", h.name, above.name, sinceAbove, above.last,
			time.Duration(r.aboveGap))
	case float64(sinceSite) < r.gap:
		o.wrong(rule(site, RuleGapSite), "%s of %v is asked %v after %v; the gap is %v", h.name,
			site.name, sinceSite,
			site.last, time.Duration(r.gap))
	case sinceSite < delay:
		o.wrong(RuleCrawlDelay, "%s of %v is asked %v after %v; the Crawl-delay is %v", h.name,
			site.name, sinceSite,
			site.last, delay)
	case sinceSite < min(site.backoff, backoffMemory):
		o.wrong(RuleBackoff, "%s of %v is asked %v after %v; the gap is %v", h.name, site.name,
			sinceSite, site.last,
			site.backoff)
	case sinceAbove < min(above.backoff, backoffMemory):
		o.wrong(RuleAddressFails, "%s is asked at %v, %v after %v; the gap is %v since %v", h.name,
			above.name,
			sinceAbove, above.last, above.backoff, above.failed)
	case sinceSite < o.fair(site):
		o.wrong(RuleFair, "%s of %v is asked %v after %v; the last fetch took %v", h.name,
			site.name, sinceSite,
			site.last, site.took)
	case o.now < max(site.floor, h.floor):
		o.wrong(RuleNotBefore, "%s of %v is asked %v too early", h.name, site.name,
			max(site.floor, h.floor)-o.now)
	}
}

// fair returns the gap that follows from the time of a site's last fetch and the delay factor. It
// is 0 if the fetch ended before the last request, because the daemon may have forgotten it.
func (o *oracle) fair(l *level) time.Duration {
	if l.tookAt < l.last {
		return 0
	}
	return min(time.Duration(float64(l.took)*o.set.delayFactor), o.set.maxDelay)
}

// wants returns the Crawl-delay of a host as the daemon knew it at a moment.
func (h *host) wants(since time.Duration) time.Duration {
	if h.delayAt > since {
		return 0
	}
	return h.delay
}

// slowest returns the longest Crawl-delay of a group's hosts with held documents.
func (g *group) slowest(since time.Duration) (longest time.Duration) {
	kept := g.slow[:0]
	for _, s := range g.slow {
		if s.over(g) {
			continue
		}
		kept = append(kept, s)
		if s.host.held > 0 {
			longest = max(longest, s.host.wants(since))
		}
	}
	g.slow = kept
	return longest
}

// slow applies a host's Crawl-delay to the rules' group that it is in.
func (h *host) slow() {
	h.longest = max(h.longest, h.delay)
	for _, g := range h.groups {
		g.longest = max(g.longest, h.delay)
	}
	if h.at != nil && h.delay > 0 && h.slowIn != h.stays {
		h.slowIn = h.stays
		h.at.slow = append(h.at.slow, stay{host: h, n: h.stays})
	}
}

// finished records the end of a request and its duration. Status 429 and 503 double the site's gap,
// success halves it. Retry-After counts with each status from 300 on.
func (o *oracle) finished(h *host, t target, took time.Duration, status int, retry time.Duration) {
	site := t.site
	site.took, site.tookAt = took, o.now
	retry = min(retry, retryMost)
	r := o.set.rulingOf(h.name, h.addr)
	base, longest := max(time.Duration(r.gap), h.wants(o.now), time.Millisecond), h.longest
	if g := h.at; g != nil && &g.level == site {
		gap, _ := o.strictest(g)
		base, longest = max(time.Duration(gap), g.slowest(o.now), time.Millisecond), g.longest
	}
	switch {
	case status == 429 || status == 503:
		site.backoff = max(site.backedOff(base), retry)
	case isSuccess(status):
		site.recovers(max(o.leastBase(base), longest))
	}
	if status >= 300 {
		site.floor = max(site.floor, o.now+retry)
		h.floor = max(h.floor, o.now+retry)
	}
	if t.above.kind == ofAddress {
		o.learn(t.above, site, status)
	}
}

func isSuccess(status int) bool { return status >= 200 && status < 400 }

// backedOff returns the gap after another failure. base is the gap without failures.
func (l *level) backedOff(base time.Duration) time.Duration {
	return max(min(2*max(base, l.backoff), backoffMost*base), l.backoff)
}

// recovers halves the gap after a success. With a gap up to base, the level backs off no longer.
func (l *level) recovers(base time.Duration) {
	if l.backoff /= 2; l.backoff <= base {
		l.backoff = 0
	}
}

// leastBase returns the longest gap that the daemon may take for the ordinary one, if the oracle
// takes base for it. It may know hosts that the oracle does not see.
func (o *oracle) leastBase(base time.Duration) time.Duration {
	if len(o.set.rules) > 0 {
		return max(base, o.slowest)
	}
	return base
}

// learn records the end of a request to a site at an address. The address backs off when maxFailing
// of its sites have failed within failingTime, or two and none has succeeded since the first.
func (o *oracle) learn(a *group, site *level, status int) {
	gap, _ := o.raised(a)
	base := max(time.Duration(gap), time.Millisecond)
	switch {
	case status == 429 || status == 503:
		a.failed = slices.DeleteFunc(a.failed, func(f failure) bool {
			return f.site == site || o.now-f.at > failingTime && f.at <= a.success
		})
		a.failed = append(a.failed, failure{site, o.now})
		recent := 0
		for _, f := range a.failed {
			if o.now-f.at <= failingTime {
				recent++
			}
		}
		if n := len(a.failed); recent >= maxFailing || n > 1 && a.failed[n-2].at > a.success {
			a.backoff = a.backedOff(base)
		}
	case isSuccess(status):
		a.success = o.now
		a.recovers(o.leastBase(base))
	}
}

// closed records that a request to a host has ended.
func (o *oracle) closed(h *host, t target) {
	h.open--
	if t.site != &h.level {
		t.site.open--
	}
	t.above.open--
	if h.to != nil {
		h.to.joining--
	}
	if h.toOver != nil {
		h.toOver.nearing--
	}
	if o.late != nil {
		h.ended = append(h.ended, o.now)
		return
	}
	o.rehome(h)
	o.release(h)
}
