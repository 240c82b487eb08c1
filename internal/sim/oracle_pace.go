package sim

import "time"

const (
	backoffMost   = 64
	retryMost     = time.Hour
	backoffMemory = 24 * time.Hour
)

// request checks and records a request to a host of a group. since is the earliest moment at
// which the daemon may have decided on it.
func (o *oracle) request(h *host, g *group, since time.Duration) {
	o.mayAsk(h, since)
	own := o.set.ruleOf(h.name, h.addr)
	gap, open := o.strictest(g)
	if g.open+g.joining >= open {
		o.wrong(RuleOpenGroup,
			"%s is asked while %d requests to %v are open, and %d to hosts that are to join it; %d may be",
			h.name, g.open, g.name, g.joining, open)
	}
	if open := o.set.openOf(own); h.open >= open {
		o.wrong(RuleOpenHost, "%s is asked at %v while %d requests to it are open; %d may be", h.name,
			g.name, h.open, open)
	}
	if own.Block && o.ruledAt <= since {
		o.wrong(RuleBlockedByRule, "%s at %v is asked, which a rule blocks since %v", h.name, h.addr, o.ruledAt)
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

// pace checks the gaps. gap and hostGap are those of the settings, in ns.
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
		o.wrong(RuleGapHost, "%s is asked %v after %v; the gap is %v", h.name, o.now-h.last, h.last,
			time.Duration(hostGap))
	case o.now < h.last+h.wants(since):
		o.wrong(RuleCrawlDelay, "%s is asked %v after %v; it wants %v", h.name, o.now-h.last, h.last, h.delay)
	case o.now < g.last+g.slowest(since):
		o.wrong(RuleCrawlDelay, "%v is asked %v after %v; a host there wants %v", g.name, o.now-g.last,
			g.last, g.slowest(since))
	case o.now < g.last+g.backoff && o.now < g.last+backoffMemory:
		o.wrong(RuleBackoff, "%v is asked %v after %v; its gap is %v", g.name, o.now-g.last, g.last, g.backoff)
	case o.now < g.last+o.fair(g):
		o.wrong(RuleFair, "%v is asked %v after %v; the last fetch took %v", g.name, o.now-g.last, g.last, g.took)
	case o.now < max(g.floor, h.floor):
		o.wrong(RuleNotBefore, "%s at %v is asked %v too early", h.name, g.name, max(g.floor, h.floor)-o.now)
	}
}

// fair returns the gap that follows from the time of a group's last fetch and the delay factor. It
// is 0 if the fetch ended before the last request, because the daemon may have forgotten it.
func (o *oracle) fair(g *group) time.Duration {
	if g.tookAt < g.last {
		return 0
	}
	return min(time.Duration(float64(g.took)*o.set.delayFactor), o.set.maxDelay)
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

// slow applies a host's Crawl-delay to its group.
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

// finished records the end of a request and its duration. Status 429 and 503 double the group's
// gap, success halves it.
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

// closed records that a request to a host has ended.
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
