package hostslots

import "time"

// Config is the settings of the slots. All fields are needed unless a comment says otherwise.
// Reconfigure cannot change those that are marked fixed.
type Config struct {
	Count         int           // host slots; fixed
	Len           int           // documents of a slot, those at a spider included
	Concurrent    int           // open requests to an address
	MaxConcurrent int           // the most open requests to an address or a site, whatever its limits allow
	Gap           time.Duration // between two requests to an address; 0: none

	SiteConcurrent int           // open requests to a site; 0: Concurrent
	SiteGap        time.Duration // between two requests to a site; 0: Gap

	StatusTimeout time.Duration    // a transaction without a status for so long is overdue
	MaxFetch      time.Duration    // a transaction that is older is overdue; 0: its age does not count
	MaxAttempts   int              // attempts that a document may have, at most 1023; see Blame
	DelayFactor   float64          // the gap is at least DelayFactor times the duration of the last fetch; 0: off
	MaxDelay      time.Duration    // the longest gap that DelayFactor leads to
	Patience      time.Duration    // a group that cannot send for longer gives up its slot if others wait
	RejectOver    int              // the hosts of a group with more documents are in the reject list
	Remember      int              // hosts without documents that stay known
	Leases        bool             // a request needs the lease of its group; fixed
	CountDocs     bool             // count documents by crawl, for ChangedGroups and Crawls; fixed
	NameCrawls    bool             // keep the crawl of each document, for Doc; fixed
	Backoffs      []AddressBackoff // from before the start; fixed
	Generation    uint32           // first generation of transactions; differs with each start; fixed
}

const (
	maxAttempts   = 1<<10 - 1      // the largest number of attempts that a document's record can hold
	maxBackoff    = 64             // doubling ends at this many times the base gap
	maxRetryAfter = time.Hour      // a longer Retry-After counts as this
	backoffMemory = 24 * time.Hour // how long the backoff of a quiet group is remembered
)

// settings is the configuration in force.
type settings struct {
	Config
	revision uint32 // how often it has changed
	next     uint32 // number of the group and host to which applySettings goes on; 0: it has reached all
}

// complete sets the values that follow from others.
func (c *settings) complete() {
	if c.SiteGap == 0 {
		c.SiteGap = c.Gap
	}
	if c.SiteConcurrent == 0 {
		c.SiteConcurrent = c.Concurrent
	}
	c.MaxConcurrent = max(c.MaxConcurrent, c.Concurrent, c.SiteConcurrent)
}

// groupsAStep is the number of groups and hosts that a change of settings is applied to at a time:
// a fraction of a millisecond's work.
const groupsAStep = 256

// Reconfigure puts new settings in force. Gaps and limits are computed from the settings each time
// they are needed. State that was computed by the old settings (when a group is due, the free
// cells of its slot, whether its hosts are rejected) is updated for a group before anything is
// sent to it, and for all groups step by step by Tick.
func (s *Slots) Reconfigure(now time.Duration, cfg Config) {
	cfg.Count, cfg.Generation = s.cfg.Count, s.cfg.Generation
	cfg.Leases, cfg.CountDocs, cfg.NameCrawls = s.cfg.Leases, s.cfg.CountDocs, s.cfg.NameCrawls
	s.cfg.Config = cfg
	s.cfg.complete()
	s.cfg.revision++
	s.cfg.next = 1
	s.applySettings(now)
}

// applySettings applies changed settings to the next groups and hosts.
func (s *Slots) applySettings(now time.Duration) {
	if s.cfg.next == 0 {
		return
	}
	groups, hosts := uint32(s.groups.Cap()), uint32(s.hosts.Cap())
	end := s.cfg.next + groupsAStep
	for id := s.cfg.next; id < min(end, hosts); id++ {
		// The host may wait until a moment that the former settings gave, or for an open request to end.
		if h := s.hosts.At(id); h.turn == turnWaits || h.turn == turnNone && h.open > 0 {
			s.updateTurn(id)
			s.rescheduleHost(now, id)
		}
	}
	for id := s.cfg.next; id < min(end, groups); id++ {
		if g := s.groups.At(id); g.revision != s.cfg.revision && s.groupByID[g.id] == id {
			s.reschedule(now, id)
		}
	}
	if s.cfg.next = end; end >= max(groups, hosts) {
		s.cfg.next = 0
	}
}

// applySettingsTo updates the state of a group that was computed by earlier settings.
func (s *Slots) applySettingsTo(id uint32, g *group) {
	g.revision = s.cfg.revision
	if g.slot != 0 {
		s.table.applySettings(g.slot - 1)
	}
	s.docsChanged(id)
}
