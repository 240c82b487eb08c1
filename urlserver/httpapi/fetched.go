package httpapi

import (
	"time"

	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

// fetched is what came back of a host's documents since the daemon has known it.
type fetched struct {
	Class2xx uint32 `json:"2xx"`
	Class3xx uint32 `json:"3xx"`
	Class4xx uint32 `json:"4xx"`
	Class5xx uint32 `json:"5xx"`
	None     uint32 `json:"none"`
	Robots   uint32 `json:"robots"`
	DNS      uint32 `json:"dns"`
	Timeout  uint32 `json:"timeout"`
	lastFetch
}

// lastFetch is about the latest of them.
type lastFetch struct {
	LastStatus *int       `json:"last_status"`   // 0: no answer; null: no spider said one
	LastError  string     `json:"last_error"`    // in words; "": none has failed
	ErrorAt    *time.Time `json:"last_error_at"` // null: none has
	Mean       *float64   `json:"mean_fetch_s"`  // of all, from sending to DONE; null: none was fetched
}

func (s *Server) fetchedOf(f *engine.Fetched) fetched {
	c := &f.Classes
	v := fetched{
		Class2xx: c[docindex.Class2xx],
		Class3xx: c[docindex.Class3xx],
		Class4xx: c[docindex.Class4xx],
		Class5xx: c[docindex.Class5xx],
		None:     c[docindex.ClassNone],
		Robots:   c[docindex.ClassRobots],
		DNS:      c[docindex.ClassDNS],
		Timeout:  c[docindex.ClassTimeout],
	}
	v.LastError = f.LastError
	if f.LastError != "" {
		at := s.date(f.ErrorAt)
		v.ErrorAt = &at
	}
	if f.HasStatus {
		v.LastStatus = &f.LastStatus
	}
	if f.HasMean {
		mean := seconds(f.Mean)
		v.Mean = &mean
	}
	return v
}

// blockedBy says who blocks a host: the operator until some moment, or a rule.
func blockedBy(until time.Duration, ruled bool) *string {
	by := "operator"
	switch {
	case until != 0:
	case ruled:
		by = "rule"
	default:
		return nil
	}
	return &by
}
