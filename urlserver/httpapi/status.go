package httpapi

import (
	"net/http"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/urlserver"
	"urlserver/urlserver/engine"
)

// status is the answer of /api/status. Counts are since the daemon's start.
type status struct {
	Uptime          float64           `json:"uptime_s"`
	Paused          bool              `json:"paused"`
	Slots           slotCounts        `json:"slots"`
	Levels          levels            `json:"levels"`
	Held            int               `json:"held"`
	Leftover        int               `json:"leftover"`
	Unresolved      int               `json:"unresolved"` // of leftover: their host's address is not known yet
	InFlight        int               `json:"in_flight"`
	Spiders         []spider          `json:"spiders"`
	Notes           []string          `json:"notes,omitempty"` // about spiders that do not work, in words
	Sent            uint64            `json:"sent"`
	Done            uint64            `json:"done"`
	Retried         uint64            `json:"retried"`
	Expired         uint64            `json:"expired"` // sent, and no status came in time
	Lost            uint64            `json:"lost"`    // sent, and the spider went away
	Stale           uint64            `json:"stale"`
	BadLines        uint64            `json:"bad_lines"`
	Outcomes        map[string]uint64 `json:"outcomes"`
	Statuses        map[string]uint64 `json:"statuses"` // the same documents, by docindex.Class
	OutcomesWaiting int               `json:"outcomes_waiting"`
	Reject          int               `json:"reject"`
	Index           indexCounts       `json:"index"`
	Reservation     *leaseCounts      `json:"reservation,omitempty"` // none: hosts are shared with no other daemon
	Kafka           *kafkaCounts      `json:"kafka,omitempty"`       // none: crawl control is not reached by Kafka
}

type slotCounts struct {
	Total   int `json:"total"`
	Used    int `json:"used"`
	Full    int `json:"full"`    // of used
	Cooling int `json:"cooling"` // groups without a slot that may not be asked yet
	Waiting int `json:"waiting"` // groups in line for a slot
}

// levels is how sites, addresses and shared networks hold hosts back.
type levels struct {
	Site struct {
		Waiting    int    `json:"waiting"`     // hosts whose site may not be asked yet
		Backoffs   uint64 `json:"backoffs"`    // answers 429 and 503, each of which made a gap longer
		RetryAfter uint64 `json:"retry_after"` // of these: with a Retry-After
	} `json:"site"`
	Address struct {
		Waiting    int    `json:"waiting"`     // hosts that wait for their turn on their address
		Backoffs   uint64 `json:"backoffs"`    // times that a gap became longer, as several sites failed
		BackingOff int    `json:"backing_off"` // addresses that back off now
		PutOff     uint64 `json:"put_off"`     // requests that had to get in line
	} `json:"address"`
	Network struct {
		Waiting int    `json:"waiting"` // hosts in line for their shared network
		PutOff  uint64 `json:"put_off"` // requests that had to get in line
	} `json:"network"`
}

func levelsOf(counts *[hostslots.Levels]hostslots.LevelCounts) (l levels) {
	site, address, network := &counts[hostslots.SiteLevel], &counts[hostslots.AddressLevel],
		&counts[hostslots.NetworkLevel]
	l.Site.Waiting, l.Site.Backoffs, l.Site.RetryAfter = site.Waiting, site.Backoffs, site.RetryAfters
	l.Address.Waiting, l.Address.Backoffs = address.Waiting, address.Backoffs
	l.Address.BackingOff, l.Address.PutOff = address.BackingOff, address.PutOff
	l.Network.Waiting, l.Network.PutOff = network.Waiting, network.PutOff
	return l
}

type spider struct {
	Addr     string `json:"addr"`
	InFlight int    `json:"in_flight"`
	Sent     uint64 `json:"sent"`
	Done     uint64 `json:"done"`
	Note     string `json:"note,omitempty"` // why it gets few documents, in words
}

type indexCounts struct {
	Requests      uint64 `json:"requests"`
	Candidates    uint64 `json:"candidates"`
	Duplicates    uint64 `json:"duplicates"`
	BadCandidates uint64 `json:"bad_candidates"`
	LastError     string `json:"last_error"` // "": the last request went well
	Embedded      bool   `json:"embedded"`
	*IndexTotals         // nil: the index is not embedded
}

// IndexTotals counts the documents of the embedded index, by state.
type IndexTotals struct {
	Scheduled int `json:"scheduled"`
	InTransit int `json:"in_transit"`
	Completed int `json:"completed"`
}

type leaseCounts struct {
	Away     bool   `json:"away"` // the last call was not answered; the warnings say why
	Held     int    `json:"held"`
	Granted  uint64 `json:"granted"`
	Denied   uint64 `json:"denied"`   // another daemon has the group, or its time has not come
	Lost     uint64 `json:"lost"`     // could not be extended
	Failures uint64 `json:"failures"` // leases asked for without an answer
}

type kafkaCounts struct {
	Connected bool   `json:"connected"` // a broker is
	Lag       int64  `json:"lag"`       // records that are not processed yet, as far as known
	Requests  uint64 `json:"requests"`  // processed and answered
	Replies   uint64 `json:"replies"`
	GivenUp   uint64 `json:"given_up"` // replies that only the firehose topic got
	Failures  uint64 `json:"failures"` // each is tried again
}

func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request) error {
	now, err := s.daemon.Status(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, s.statusOf(now, s.totals.fresh()))
	return nil
}

// statusOf joins the daemon's status and the embedded index's totals, which are nil where there is
// none.
func (s *Server) statusOf(now urlserver.Status, totals *IndexTotals) status {
	return status{
		Uptime: seconds(now.Uptime),
		Paused: now.Paused,
		Slots: slotCounts{now.Slots.Slots, now.Slots.Used, now.Slots.Full, now.Slots.Cooling,
			now.Slots.Waiting},
		Levels:          levelsOf(&now.Slots.Levels),
		Held:            now.Slots.Held,
		Leftover:        now.Slots.Leftover,
		Unresolved:      now.Slots.Unresolved,
		InFlight:        now.Slots.InFlight,
		Spiders:         spidersOf(now.Spiders),
		Notes:           append([]string{}, now.Notes...),
		Sent:            now.Sent,
		Done:            now.Outcomes[docindex.Done],
		Retried:         now.Retried,
		Expired:         now.Expired,
		Lost:            now.Lost,
		Stale:           now.Stale,
		BadLines:        now.BadLines,
		Outcomes:        outcomesOf(now.Outcomes),
		Statuses:        statusesOf(now.Classes),
		OutcomesWaiting: now.OutcomesWaiting,
		Reject:          now.Rejected,
		Index: indexCounts{
			Requests: now.IndexRequests, Candidates: now.Candidates, Duplicates: now.Duplicates,
			BadCandidates: now.BadCandidates, LastError: now.IndexError, Embedded: now.Embedded,
			IndexTotals: totals,
		},
		Reservation: leasesOf(&now),
		Kafka:       s.kafkaNow(),
	}
}

func leasesOf(s *urlserver.Status) *leaseCounts {
	if !s.Reserving {
		return nil
	}
	return &leaseCounts{
		Away: s.ReserverAway, Held: s.Leases, Granted: s.LeasesGranted, Denied: s.LeasesDenied,
		Lost: s.LeasesLost, Failures: s.LeaseErrors,
	}
}

func (s *Server) kafkaNow() *kafkaCounts {
	if s.kafka == nil {
		return nil
	}
	f := s.kafka()
	return &kafkaCounts{Connected: f.Connected, Lag: f.Lag, Requests: f.Requests, Replies: f.Replies,
		GivenUp: f.GivenUp, Failures: f.Errors}
}

func spidersOf(all []engine.SpiderStats) []spider {
	spiders := make([]spider, 0, len(all))
	for _, one := range all {
		spiders = append(spiders, spider{one.Addr, one.InFlight, one.Sent, one.Done, one.Note})
	}
	return spiders
}

func outcomesOf(counts [docindex.Kinds]uint64) map[string]uint64 {
	outcomes := make(map[string]uint64, len(counts))
	for kind, n := range counts {
		outcomes[docindex.Kind(kind).String()] = n
	}
	return outcomes
}

func statusesOf(counts [docindex.Classes]uint64) map[string]uint64 {
	statuses := make(map[string]uint64, len(counts))
	for class, n := range counts {
		statuses[docindex.Class(class).String()] = n
	}
	return statuses
}

// seconds converts d, rounded to the microsecond.
func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond).Microseconds()) / 1e6
}

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]bool{"alive": true})
	return nil
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"` // why not
}

func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) error {
	reasons := s.daemon.Ready(r.Context())
	if len(reasons) > 0 {
		writeJSON(w, http.StatusServiceUnavailable, readiness{Reasons: reasons})
		return nil
	}
	writeJSON(w, http.StatusOK, readiness{Ready: true, Reasons: []string{}})
	return nil
}
