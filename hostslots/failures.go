package hostslots

import (
	"slices"
	"time"
)

// failures is the sites of one address that answered 429 or 503 last. The address backs off as a
// site does when mostFailing of them did so within failingTime, or when two did and no site of the
// address has succeeded since the first of the two.
type failures struct {
	sites   []failure     // the earliest first, each site once, at most mostFailing
	success time.Duration // when a site of the address last succeeded
}

// failure is the last time at which a site answered 429 or 503.
type failure struct {
	site string
	at   time.Duration
}

const (
	mostFailing = 3
	failingTime = time.Minute
)

// add notes that a site failed. It reports whether the address has to back off.
func (f *failures) add(site string, now time.Duration) bool {
	f.sites = slices.DeleteFunc(f.sites, func(old failure) bool { return old.site == site })
	if len(f.sites) == mostFailing {
		f.sites = slices.Delete(f.sites, 0, 1)
	}
	f.sites = append(f.sites, failure{site, now})
	n := len(f.sites)
	return n == mostFailing && now-f.sites[0].at <= failingTime || n > 1 && f.sites[n-2].at >= f.success
}

// learnAddress adapts the pace of an address to the end of a request to one of its sites.
func (s *Slots) learnAddress(now time.Duration, id, hostID uint32, f *Feedback) {
	g := s.groups.At(id)
	if g.kind != ofAddress || faulty(FaultAddressBackoff) {
		return
	}
	switch {
	case f.overloaded():
		if s.pacer.failures[id] == nil {
			s.pacer.failures[id] = &failures{success: -1}
			g.failing = true
		}
		if s.pacer.failures[id].add(s.siteName(hostID), now) {
			s.pacer.levels[AddressLevel].Backoffs++
			s.pacer.countBackingOff(g, -1)
			s.pacer.failed(&g.pace, s.pacer.groupGap(g), 0)
			s.pacer.countBackingOff(g, 1)
			s.pacer.backoffs.changed[id] = struct{}{}
		}
	case f.success() && g.failing:
		s.pacer.failures[id].success = now
		before := s.pacer.extra(&g.pace).backoff
		s.pacer.countBackingOff(g, -1)
		s.pacer.succeeded(&g.pace, s.pacer.groupGap(g))
		s.pacer.countBackingOff(g, 1)
		after := s.pacer.extra(&g.pace).backoff
		if after != before {
			s.pacer.backoffs.changed[id] = struct{}{}
		}
		if after == 0 && now-s.pacer.failures[id].last() > failingTime {
			s.forgetFailures(id, g)
		}
	}
}

// countBackingOff adds n to the number of addresses that back off if the address of a group does.
func (p *pacer) countBackingOff(g *group, n int) {
	if g.kind == ofAddress && p.extra(&g.pace).backoff > 0 {
		p.levels[AddressLevel].BackingOff += n
	}
}

// last returns when a site failed last.
func (f *failures) last() time.Duration { return f.sites[len(f.sites)-1].at }

// forgetFailures is called when none of an address' failures counts any more.
func (s *Slots) forgetFailures(id uint32, g *group) {
	delete(s.pacer.failures, id)
	g.failing = false
}

// failingSites returns the names of the sites that made a group back off.
func (s *Slots) failingSites(id uint32) (names []string) {
	if f := s.pacer.failures[id]; f != nil && s.pacer.extra(&s.groups.At(id).pace).backoff > 0 {
		for _, one := range f.sites {
			names = append(names, one.site)
		}
	}
	return names
}
