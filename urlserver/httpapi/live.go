package httpapi

import (
	"errors"
	"net/http"
	"strconv"

	"urlserver/configs"
	"urlserver/urlserver"
	"urlserver/urlserver/httpapi/livefeed"
)

// liveSpiders bounds the spiders in the event "status".
const liveSpiders = 32

// live is the event "status".
type live struct {
	status
	Ready       []string `json:"not_ready"` // the reasons; empty: it is ready
	MoreSpiders int      `json:"more_spiders"`
}

func (s *Server) liveOf(now urlserver.Status) any {
	l := live{status: s.statusOf(now, s.totals.recent()), Ready: append([]string{}, now.NotReady()...)}
	if n := len(l.Spiders); n > liveSpiders {
		l.Spiders, l.MoreSpiders = l.Spiders[:liveSpiders], n-liveSpiders
	}
	return l
}

func (s *Server) newFeed() *livefeed.Feed {
	return livefeed.New(livefeed.Config{
		Source:    s.daemon,
		SlotCount: s.daemon.Settings().QueueCount,
		QueueLen:  func() int { return s.daemon.Settings().QueueLen },
		Status:    s.liveOf,
		Warnings:  func(after uint64, most int) (any, uint64) { return s.warnings.after(after, most) },
	})
}

// serveLive streams server-sent events: status each second, and top, sample, warnings and slots
// when they change. It ends when the server stops, or the peer is too slow.
func (s *Server) serveLive(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // tells a proxy not to buffer
	if r.Method == http.MethodHead {
		return nil
	}
	v, err := s.feed.Subscribe(r.Context())
	if errors.Is(err, livefeed.ErrTooManySubscribers) {
		return httpError{http.StatusTooManyRequests, err.Error()}
	}
	if err != nil {
		return err
	}
	defer s.feed.Unsubscribe(v)
	out := http.NewResponseController(w)
	for {
		select {
		case text, more := <-v.C:
			if !more {
				return nil
			}
			if _, err := w.Write(text); err != nil || out.Flush() != nil {
				return nil // the peer has gone
			}
		case <-r.Context().Done():
			return nil
		}
	}
}

func (s *Server) serveHistory(w http.ResponseWriter, r *http.Request) error {
	all, err := s.feed.History(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"every_s": livefeed.Every.Seconds(), "samples": all})
	return nil
}

func (s *Server) serveTop(w http.ResponseWriter, r *http.Request) error {
	top, err := s.feed.Top(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, top)
	return nil
}

// serveMap answers with half a byte for each slot, in the encoding of livefeed.Feed.Map.
func (s *Server) serveMap(w http.ResponseWriter, r *http.Request) error {
	cells, err := s.feed.Map(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(cells)))
	_, _ = w.Write(cells) // who has gone needs no answer
	return nil
}

func (s *Server) serveSlot(w http.ResponseWriter, r *http.Request) error {
	count := s.daemon.Settings().QueueCount
	n, err := strconv.ParseUint(r.PathValue("slot"), 10, 32)
	if err != nil || n >= uint64(count) {
		return badRequestf("slot %.40q: a whole number from 0 to %d is wanted", r.PathValue("slot"), count-1)
	}
	views, err := s.daemon.SlotsNumbered(r.Context(), []uint32{uint32(n)}, slotHosts)
	if err != nil {
		return err
	}
	if len(views) == 0 {
		return httpError{http.StatusNotFound, "slot " + strconv.FormatUint(n, 10) + " is empty"}
	}
	writeJSON(w, http.StatusOK, s.slotsOf(views)[0])
	return nil
}

func (s *Server) serveWarnings(w http.ResponseWriter, _ *http.Request) error {
	list, _ := s.warnings.after(0, keptWarnings)
	writeJSON(w, http.StatusOK, map[string]any{"warnings": list})
	return nil
}

// shownSetting is a setting in force.
type shownSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`  // as TOML, "***" for a token
	Source string `json:"source"` // the settings file, "environment", "flag" or "default"
	Live   bool   `json:"live"`   // SIGHUP can change it
}

func (s *Server) serveSettings(w http.ResponseWriter, _ *http.Request) error {
	list := []shownSetting{}
	for _, one := range s.daemon.Settings().Shown() {
		source := one.Source.String()
		if one.Source == configs.FromFile || one.Source == configs.FromDefault && !one.Default {
			source = s.file
		}
		list = append(list, shownSetting{Name: one.Name, Value: one.Value, Source: source, Live: one.Live})
	}
	writeJSON(w, http.StatusOK, map[string]any{"settings": list})
	return nil
}
