package engine

import (
	"slices"
	"time"

	"urlserver/hostslots"
)

// The engine limits the open requests for robots.txt. Hosts whose last request failed have a limit
// of their own, so that hosts that fail again and again hold up no others. A request that is open
// for slowFetch counts as slow, and no longer against the limit of quick ones, so the next request
// may start. Slow requests have a limit of their own, which is larger.
const (
	slowFetch  = time.Second // after which a request that is open is slow
	firstOpen  = 256         // requests that are open at once and not slow: of hosts whose last one did not fail
	againOpen  = 64          // and of those whose last one did
	slowPlaces = 8           // slow ones at once, for each place
)

// fetchLimit counts the open requests for robots.txt of one kind.
type fetchLimit struct {
	most        int
	quick, slow int
	line        []openFetch // of the quick ones, in the order in which they went out, and of some that have ended
}

// openFetch is one request.
type openFetch struct {
	id      uint32
	started time.Duration
}

func newFetchLimits() [hostslots.OwnQueues]fetchLimit {
	return [hostslots.OwnQueues]fetchLimit{hostslots.FirstTry: {most: firstOpen}, hostslots.Retry: {most: againOpen}}
}

// free reports whether one more request may start. If not, wait is the time until an open request
// counts as slow, so that one may; 0: a request has to end first.
func (p *fetchLimit) free(now time.Duration, fetches map[uint32]*robotsFetch) (wait time.Duration, free bool) {
	most := p.most
	if faulty(FaultPlaces) {
		most /= 4
	}
	for len(p.line) > 0 && p.quick >= most {
		first := p.line[0]
		t := fetches[first.id]
		switch {
		case t == nil || !t.quick || t.started != first.started: // it has ended
		case p.slow == slowPlaces*p.most, faulty(FaultPlaces):
			return 0, false
		case now-first.started < slowFetch:
			return first.started + slowFetch - now, false
		default:
			t.quick = false
			p.quick--
			p.slow++
		}
		p.line = p.line[1:]
	}
	return 0, p.quick < most
}

// take counts the request of a fetch that starts now.
func (p *fetchLimit) take(id uint32, t *robotsFetch, fetches map[uint32]*robotsFetch) {
	if len(p.line) >= 2*p.most { // those behind a slow one have ended
		p.line = slices.DeleteFunc(p.line, func(o openFetch) bool {
			t := fetches[o.id]
			return t == nil || !t.quick || t.started != o.started
		})
	}
	t.quick = true
	p.quick++
	p.line = append(p.line, openFetch{id, t.started})
}

// leave ends the request of a fetch.
func (p *fetchLimit) leave(t *robotsFetch) {
	if t.quick {
		p.quick--
	} else {
		p.slow--
	}
	t.quick = false
}
