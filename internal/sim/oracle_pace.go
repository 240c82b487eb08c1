package sim

import "time"

const (
	backoffMost   = 64
	retryMost     = time.Hour
	backoffMemory = 24 * time.Hour
)

// request checks that a group and a host may be asked now, and notes that they
// were. since is the earliest moment at which that may have been decided.
func (o *oracle) request(h *host, g *group, since time.Duration) {
	o.mayAsk(h, since)
	own := o.set.ruleOf(h.name, h.addr)
	gap, open := o.strictest(g)
	if g.open+g.joining >= open {
		o.wrong(RuleOpenGroup, "%s is asked while %d requests to %v are open, and %d to hosts that are to join it; %d may be", h.name, g.open, g.name, g.joining, open)
	}
	if open := o.set.openOf(own); h.open >= open {
		o.wrong(RuleOpenHost, "%s is asked at %v while %d requests to it are open; %d may be", h.name, g.name, h.open, open)
	}
	if own.Block && o.ruledAt <= since {
		o.wrong(RuleBarred, "%s at %v is asked, which a rule blocks since %v", h.name, h.addr, o.ruledAt)
	}
	o.pace(h, g, since, gap, o.set.gapOf(own))
	if o.service != nil {
		g.work += max(time.Duration(gap), g.slowest(since), g.backoff, o.fair(g), ordinary)
	}
	g.open++
	h.open++
	g.asked = true
	g.last, h.last = o.now, o.now
}

func (o *oracle) mayAsk(h *host, since time.Duration) {
	for reason, from := range o.muteSince {
		if from >= 0 && from <= since {
			o.wrong(RuleMute, "%s is asked, but since %v the daemon is %s", h.name, from, []string{"paused", "choked", "stopped"}[reason])
		}
	}
	if from, until := h.blocked[0], h.blocked[1]; from <= since && o.now < until {
		o.wrong(RuleBlocked, "%s is asked, but is blocked from %v until %v", h.name, from, until)
	}
}

// pace checks the gaps, of which settings want those in ns.
func (o *oracle) pace(h *host, g *group, since time.Duration, gap, hostGap float64) {
	sinceGroup, sinceHost := float64(o.now-g.last), float64(o.now-h.last)
	gapRule := RuleGapGroup
	if !g.asked {
		gapRule = RuleStart
	}
	switch {
	case sinceGroup < gap:
		o.wrong(gapRule, "%v is asked %v after %v; the gap is %v", g.name, o.now-g.last, g.last, time.Duration(gap))
	case sinceHost < hostGap:
		o.wrong(RuleGapHost, "%s is asked %v after %v; the gap is %v", h.name, o.now-h.last, h.last, time.Duration(hostGap))
	case o.now < h.last+h.wants(since):
		o.wrong(RuleCrawlDelay, "%s is asked %v after %v; it wants %v", h.name, o.now-h.last, h.last, h.delay)
	case o.now < g.last+g.slowest(since):
		o.wrong(RuleCrawlDelay, "%v is asked %v after %v; a host there wants %v", g.name, o.now-g.last, g.last, g.slowest(since))
	case o.now < g.last+g.backoff && o.now < g.last+backoffMemory:
		o.wrong(RuleBackoff, "%v is asked %v after %v; its gap is %v", g.name, o.now-g.last, g.last, g.backoff)
	case o.now < g.last+o.fair(g):
		o.wrong(RuleFair, "%v is asked %v after %v; the last fetch took %v", g.name, o.now-g.last, g.last, g.took)
	case o.now < max(g.floor, h.floor):
		o.wrong(RuleNotBefore, "%s at %v is asked %v too early", h.name, g.name, max(g.floor, h.floor)-o.now)
	}
}

// fair is the gap that the time of a group's last fetch asks for, where that one
// ended after the last request; else the daemon may have forgotten it.
func (o *oracle) fair(g *group) time.Duration {
	if g.tookAt < g.last {
		return 0
	}
	return min(time.Duration(float64(g.took)*o.set.delayFactor), o.set.maxDelay)
}

// wants is the Crawl-delay of a host that was known at a moment.
func (h *host) wants(since time.Duration) time.Duration {
	if h.delayAt > since {
		return 0
	}
	return h.delay
}

// slowest is the longest Crawl-delay among a group's hosts with documents held.
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

// slow has a host's Crawl-delay bind its group.
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

// finished notes the end of a request that took so long. It learns from the status: 429 and 503
// double the gap, success halves it.
func (o *oracle) finished(h *host, g *group, took time.Duration, status int, retry time.Duration) {
	g.took, g.tookAt = took, o.now
	retry = min(retry, retryMost)
	gap, _ := o.strictest(g)
	base := max(time.Duration(gap), g.slowest(o.now), time.Millisecond)
	switch {
	case status == 429 || status == 503:
		doubled := min(2*max(base, g.backoff), backoffMost*base)
		g.backoff = max(doubled, retry, g.backoff)
		g.floor = max(g.floor, o.now+retry)
		h.floor = max(h.floor, o.now+retry)
	case status >= 200 && status < 400:
		if len(o.set.rules) > 0 { // hosts that the oracle does not see in the group may be slow
			base = max(base, o.slowest)
		}
		if g.backoff /= 2; g.backoff <= max(base, g.longest) {
			g.backoff = 0
		}
	}
}

// closed notes that a request to a host is open no more.
func (o *oracle) closed(h *host, g *group) {
	g.open--
	h.open--
	if h.to != nil {
		h.to.joining--
	}
	if o.late != nil {
		h.ended = append(h.ended, o.now)
		return
	}
	o.rehome(h)
	o.release(h)
}
