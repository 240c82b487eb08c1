package engine

import (
	"maps"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
)

// Stats has counters since the start of the daemon, and its present state.
type Stats struct {
	// Sent counts documents sent, Retried those of them that were sent before. Expired counts
	// documents taken back for want of a status, Lost those taken back because the spider had gone.
	Sent, Retried, Expired, Lost uint64
	Back                         uint64 // documents that spiders gave back
	Bytes                        uint64 // of bodies, as spiders reported them
	Stale, BadLines              uint64 // lines of spiders
	Outcomes                     [docindex.Kinds]uint64
	Classes                      [docindex.Classes]uint64 // the same documents, by what came back
	FetchTook                    time.Duration            // of all fetches that ended with DONE, from sending on
	IndexRequests                uint64
	Candidates, Duplicates       uint64 // offered; of them: held or just ended
	BadCandidates                uint64 // without as much as a DOC_ID
	RobotsRequests               uint64
	RobotsFound                  uint64            // robots.txt that the doc index had kept
	Robots                       map[string]uint64 // verdicts on origins, by state
	RobotsDropped                uint64            // robots.txt that were dropped to make room for others
	Rejected                     int               // hosts in the last reject list
	Delay                        Histogram         // from due to sent
	LeasesGranted, LeasesDenied  uint64            // leases got from the reservation, and not got
	// LeasesLost counts leases that ended while they were needed, LeaseErrors requests that the
	// reservation did not answer.
	LeasesLost, LeaseErrors uint64
	Leases                  int // leases held

	Slots         hostslots.Counts
	Spiders       []SpiderStats
	Paused        bool
	Stopping      bool
	RobotsFetches int      // robots.txt fetches under way
	Notes         []string // what people should know of spiders that are not trusted, in words

	RobotsBytes int // that the rules of all robots.txt take
}

// SpiderStats is what is known of one connection.
type SpiderStats struct {
	Addr       string
	InFlight   int
	Sent, Done uint64
	Note       string // in words: why it gets few documents; "": it does not
}

// Stats costs O(spiders).
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Robots = maps.Clone(e.stats.Robots)
	s.Slots = e.slots.Counts()
	s.Paused, s.Stopping = e.sending.paused, e.sending.stopping
	s.RobotsFetches, s.RobotsBytes = len(e.robots.open), e.robots.cache.bytes
	s.Leases = e.leases.held.len
	for id, sp := range e.spiders.byID {
		if sp != nil && !sp.gone {
			s.Spiders = append(s.Spiders, SpiderStats{
				Addr: sp.addr, InFlight: sp.inFlight, Sent: sp.sent, Done: sp.done,
				Note: e.noteOf(uint32(id), sp),
			})
		}
	}
	s.Notes = e.notes()
	return s
}

// Bounds of the buckets of a Histogram.
var Bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute,
}

// Histogram counts durations by size.
type Histogram struct {
	Buckets [len(Bounds) + 1]uint64 // the last one: above all bounds
	Sum     time.Duration
}

// Observe counts one.
func (h *Histogram) Observe(d time.Duration) {
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.Buckets[i]++
	h.Sum += d
}

// InFlight is the number of documents at spiders.
func (e *Engine) InFlight() int { return e.slots.Counts().InFlight }

// Paused reports whether the operator has paused sending.
func (e *Engine) Paused() bool { return e.sending.paused }
