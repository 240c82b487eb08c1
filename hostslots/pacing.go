package hostslots

import "time"

// base is a group's gap between two requests as settings and robots.txt have it.
func (s *Slots) base(g *group) time.Duration {
	if faulty(faultDelay) {
		return s.ordinary(g)
	}
	return max(s.ordinary(g), g.delay)
}

// gap is a group's gap between two requests, with backing off and the last fetch's time.
func (s *Slots) gap(g *group) time.Duration { return max(s.base(g), g.backoff, s.fair(g)) }

// fair is the gap that the last fetch's time asks for.
func (s *Slots) fair(g *group) time.Duration {
	if s.cfg.DelayFactor == 0 || faulty(faultFair) {
		return 0
	}
	return time.Duration(min(float64(g.took)*s.cfg.DelayFactor, float64(s.cfg.MaxDelay)))
}

// due is the moment from which a group may be asked again.
func (s *Slots) due(g *group) time.Duration {
	switch {
	case faulty(faultGap):
		return g.last + s.gap(g)/2
	case faulty(faultStart) && g.last == 0:
		return g.notBefore
	}
	return max(g.last+s.gap(g), g.notBefore)
}

// Cause is why a group may not be asked before some moment, whatever its gap.
type Cause uint8

const (
	Nothing    Cause = iota
	RetryAfter       // a host of the group asked for it
	LastFetch        // a fetch took long: DelayFactor
	Moved            // a host of the group had another address, where a request was not due before
)

// putOff has the group not asked before the given moment.
func (g *group) putOff(until time.Duration, cause Cause) {
	if until > g.notBefore {
		g.notBefore, g.cause = until, cause
	}
}

// Feedback is what the end of a request tells of a host.
type Feedback struct {
	Took       time.Duration // from request to end
	Status     int           // HTTP status; 0: no answer, or not told
	RetryAfter time.Duration // asked for by the host; 0: not
}

// learn adapts a group's pace to what a request brought. With 429 and 503 the
// gap doubles, up to 64 times the ordinary one and at least what Retry-After asks
// for; each success halves it back.
func (s *Slots) learn(now time.Duration, g *group, f Feedback) {
	g.took = f.Took
	g.putOff(g.last+s.fair(g), LastFetch)
	retry, base := min(f.RetryAfter, maxRetryAfter), max(s.base(g), time.Millisecond)
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
		if g.backoff <= s.base(g) {
			g.backoff = 0
		}
	}
}

// SetDelay says how long a host asks to be left alone between two requests
// (robots.txt Crawl-delay); 0: it does not ask.
func (s *Slots) setCrawlDelay(now time.Duration, hostID uint32, delay time.Duration) {
	h := s.hosts.At(hostID)
	if h.delay == delay {
		return
	}
	old := h.delay
	h.delay = delay
	if h.group == 0 {
		return
	}
	g := s.groups.At(h.group)
	s.addDelay(g, delay)
	s.dropDelay(g, old)
	s.place(now, h.group)
}

// addDelay and dropDelay keep the longest delay of a group's hosts, which the
// group as a whole obeys. Hosts are looked through only when the last one with
// the longest delay goes.
func (s *Slots) addDelay(g *group, delay time.Duration) {
	switch {
	case delay == 0:
	case delay > g.delay:
		g.delay, g.holders = delay, 1
	case delay == g.delay:
		g.holders++
	}
}

func (s *Slots) dropDelay(g *group, delay time.Duration) {
	if delay == 0 || delay != g.delay {
		return
	}
	if g.holders--; g.holders > 0 {
		return
	}
	g.delay = 0
	for id := g.members.head; id != 0; id = s.hosts.At(id).member.next {
		s.addDelay(g, s.hosts.At(id).delay)
	}
}

// Block holds back everything to a host until the given moment; one that is
// past lets it go on.
func (s *Slots) blockHost(now time.Duration, hostID uint32, until time.Duration) {
	h := s.hosts.At(hostID)
	if until > now {
		h.blocked = until
		s.block.Set(hostID, until)
		s.shutChanged(now, hostID)
		return
	}
	h.blocked = 0
	s.block.Remove(hostID)
	s.shutChanged(now, hostID)
}

// unblock lets hosts go on whose block has ended.
func (s *Slots) unblock(now time.Duration) {
	for {
		id, due, ok := s.block.Min()
		if !ok || due > now {
			return
		}
		s.blockHost(now, id, 0)
	}
}
