package admin

import (
	"net/http"
	"time"

	"urlserver/docindex"
	"urlserver/urlserver"
	"urlserver/urlserver/engine"
)

// status is the answer of /api/status. Counts are since the daemon's start.
type status struct {
	Uptime          float64           `json:"uptime_s"`
	Paused          bool              `json:"paused"`
	Slots           slotCounts        `json:"slots"`
	Held            int               `json:"held"`
	Leftover        int               `json:"leftover"`
	Unresolved      int               `json:"unresolved"` // of leftover: their host's address is not known yet
	InFlight        int               `json:"in_flight"`
	Spiders         []spider          `json:"spiders"`
	Sent            uint64            `json:"sent"`
	Done            uint64            `json:"done"`
	Retried         uint64            `json:"retried"`
	Expired         uint64            `json:"expired"` // sent, and then no status for too long
	Lost            uint64            `json:"lost"`    // sent, and then the spider was gone
	Stale           uint64            `json:"stale"`
	BadLines        uint64            `json:"bad_lines"`
	Outcomes        map[string]uint64 `json:"outcomes"`
	OutcomesWaiting int               `json:"outcomes_waiting"`
	Reject          int               `json:"reject"`
	Index           indexCounts       `json:"index"`
}

type slotCounts struct {
	Total   int `json:"total"`
	Used    int `json:"used"`
	Full    int `json:"full"`    // of used
	Cooling int `json:"cooling"` // groups without a slot that may not be asked yet
	Waiting int `json:"waiting"` // groups in line for a slot
}

type spider struct {
	Addr     string `json:"addr"`
	InFlight int    `json:"in_flight"`
	Sent     uint64 `json:"sent"`
	Done     uint64 `json:"done"`
}

type indexCounts struct {
	Requests      uint64 `json:"requests"`
	Candidates    uint64 `json:"candidates"`
	Duplicates    uint64 `json:"duplicates"`
	BadCandidates uint64 `json:"bad_candidates"`
	LastError     string `json:"last_error"` // "": the last request went well
	Embedded      bool   `json:"embedded"`
}

func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request) error {
	now, err := s.daemon.Status(r.Context())
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, statusOf(now))
	return nil
}

func statusOf(s urlserver.Status) status {
	return status{
		Uptime:          seconds(s.Uptime),
		Paused:          s.Paused,
		Slots:           slotCounts{s.Slots.Slots, s.Slots.Used, s.Slots.Full, s.Slots.Cooling, s.Slots.Waiting},
		Held:            s.Slots.Held,
		Leftover:        s.Slots.Leftover,
		Unresolved:      s.Slots.Unresolved,
		InFlight:        s.Slots.InFlight,
		Spiders:         spidersOf(s.Spiders),
		Sent:            s.Sent,
		Done:            s.Outcomes[docindex.Done],
		Retried:         s.Retried,
		Expired:         s.Expired,
		Lost:            s.Lost,
		Stale:           s.Stale,
		BadLines:        s.BadLines,
		Outcomes:        outcomesOf(s.Outcomes),
		OutcomesWaiting: s.OutcomesWaiting,
		Reject:          s.Rejected,
		Index: indexCounts{
			Requests: s.IndexRequests, Candidates: s.Candidates, Duplicates: s.Duplicates,
			BadCandidates: s.BadCandidates, LastError: s.IndexError, Embedded: s.Embedded,
		},
	}
}

func spidersOf(all []engine.SpiderStats) []spider {
	spiders := make([]spider, 0, len(all))
	for _, one := range all {
		spiders = append(spiders, spider{one.Addr, one.InFlight, one.Sent, one.Done})
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

// seconds is d to the microsecond, with no more digits than that needs.
func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond).Microseconds()) / 1e6
}

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, map[string]bool{"alive": true})
	return nil
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"` // what is in the way
}

func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) error {
	reasons := s.daemon.Ready(r.Context())
	if len(reasons) > 0 {
		answer(w, http.StatusServiceUnavailable, readiness{Reasons: reasons})
		return nil
	}
	answer(w, http.StatusOK, readiness{Ready: true, Reasons: []string{}})
	return nil
}
