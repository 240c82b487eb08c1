package addresses

import "strings"

const (
	maxBackoff    = 64     // times the ordinary gap
	failureMemory = 60_000 // ms
	failingSites  = 3      // so many sites that fail within failureMemory make their address back off
)

// failure is a site that answered 429 or 503.
type failure struct {
	site uint32
	at   int64
}

// Answered takes what the site of a host answered to a client: 429 or 503, or a success. An address
// backs off as a site does when three of its sites failed within a minute, or two did and none has
// succeeded since the first of them. Shared networks do not.
func (t *Table) Answered(host []byte, fails bool, now int64) {
	site := t.sites[string(host)]
	if site == 0 {
		return
	}
	p := t.paces.At(t.paces.At(site).address)
	switch {
	case t.paces.At(site).address == 0 || p.queues == 0:
	case fails:
		if p.failed(site, now) {
			gap := max(1, p.now().Gap)
			p.backoff = min(2*max(gap, p.backoff), maxBackoff*gap)
			p.next = max(p.next, now+p.backoff)
		}
	default:
		p.succeeded = now
		if p.backoff /= 2; p.backoff <= p.now().Gap {
			p.backoff = 0
		}
	}
}

// failed records a failure, and reports whether it makes the address back off.
func (p *pace) failed(site uint32, now int64) bool {
	recent := p.failures[:0]
	for _, f := range p.failures {
		if f.site != 0 && f.site != site && f.at+failureMemory > now {
			recent = append(recent, f)
		}
	}
	if len(recent) == failingSites {
		recent = append(recent[:0], recent[1:]...)
	}
	recent = append(recent, failure{site, now})
	clear(p.failures[len(recent):])
	return len(recent) == failingSites || len(recent) == 2 && p.succeeded < recent[0].at
}

// failing lists the sites that made an address back off; "": it does not.
func (t *Table) failing(address uint32) string {
	var names []string
	if p := t.paces.At(address); p.backoff > 0 {
		for _, f := range p.failures {
			// The number of a site that was forgotten may be another pace's now.
			if site := t.paces.At(f.site); f.site != 0 && site.address == address {
				names = append(names, strings.TrimPrefix(site.name, mark))
			}
		}
	}
	return strings.Join(names, ", ")
}
