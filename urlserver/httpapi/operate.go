package httpapi

import (
	"errors"
	"math"
	"net/http"
	"time"

	"urlserver/urlserver"
)

// pause pauses or resumes sending.
func (s *Server) pause(paused bool) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := s.daemon.Pause(r.Context(), paused); err != nil {
			return err
		}
		s.log.Info().Bool("paused", paused).Str("by", r.RemoteAddr).Msg("operator pauses or resumes sending")
		writeJSON(w, http.StatusOK, map[string]bool{"paused": paused})
		return nil
	}
}

// block is the body of /api/hosts/{host}/block.
type block struct {
	Until string `json:"until"` // RFC 3339
}

// blocked is its answer.
type blocked struct {
	Host         string     `json:"host"`
	BlockedUntil *time.Time `json:"blocked_until"`
}

func (s *Server) serveBlock(w http.ResponseWriter, r *http.Request) error {
	name, err := hostName(r.PathValue("host"))
	if err != nil {
		return err
	}
	var b block
	if err := readJSON(w, r, &b); err != nil {
		return err
	}
	var until time.Time
	if until.UnmarshalText([]byte(b.Until)) != nil {
		return badRequestf(
			`body: "until" is wanted, as in {"until": "2030-01-02T03:04:05Z"}; a time in the past unblocks`)
	}
	if longest := time.Now().Add(urlserver.MaxBlock).UTC(); until.After(longest) {
		until = longest
	}
	if err := s.daemon.Block(r.Context(), name, until); err != nil {
		return err
	}
	s.log.Info().Str("host", name).Time("until", until).Str("by",
		r.RemoteAddr).Msg("operator blocks or unblocks a host")
	done := blocked{Host: name}
	if until.After(time.Now()) {
		done.BlockedUntil = &until
	}
	writeJSON(w, http.StatusOK, done)
	return nil
}

// maxDelay is the longest delay that can be set on a host, in seconds.
const maxDelay = 30 * 24 * 3600

// delay is the body of /api/hosts/{host}/delay, and its answer.
type delay struct {
	Seconds *float64 `json:"delay_s"`
}

// serveDelay sets the least time between two URLs of a host that the embedded index gives out, to
// any consumer and of any crawl.
func (s *Server) serveDelay(w http.ResponseWriter, r *http.Request) error {
	name, err := hostName(r.PathValue("host"))
	if err != nil {
		return err
	}
	var d delay
	if err := readJSON(w, r, &d); err != nil {
		return err
	}
	if n := d.Seconds; n == nil || *n < 0 || *n > maxDelay || *n != math.Trunc(*n) {
		return badRequestf(`body: "delay_s" is wanted, whole seconds from 0 to %d, as in {"delay_s": 10}`, maxDelay)
	}
	seconds := uint32(*d.Seconds)
	err = s.daemon.Delay(r.Context(), name, seconds)
	if errors.Is(err, urlserver.ErrNoStore) {
		return httpError{http.StatusNotFound,
			err.Error() + ", which would keep the delay: docindex.kind says it is elsewhere; set it there"}
	}
	if err != nil {
		return err
	}
	s.log.Info().Str("host", name).Uint32("seconds", seconds).Str("by",
		r.RemoteAddr).Msg("operator sets the delay of a host")
	writeJSON(w, http.StatusOK, d)
	return nil
}
