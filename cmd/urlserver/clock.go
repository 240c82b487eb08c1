package main

import (
	"context"
	"time"
)

// clockStep is how far the time of day has to move before the log says so. It is looked at as often.
const clockStep = time.Minute

// watchClock logs when the time of day leaves the time of an index in this process, until ctx ends.
func (s *server) watchClock(ctx context.Context) {
	tick := time.NewTicker(clockStep)
	defer tick.Stop()
	w := clockWatch{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if by := now.Round(0).Sub(s.start.Round(0)) - now.Sub(s.start); w.isNews(by) {
			s.log.Warn().Stringer("by", by.Round(time.Second)).Msg("the clock of the machine was set, or the machine " +
				"was suspended: the index does not follow, so documents become due too late or too early; restart " +
				"the daemon, and export an index in memory before")
		}
	}
}

// clockWatch has by how much the clock was set since the start of the daemon, as the log said last.
type clockWatch struct{ said time.Duration }

// isNews reports whether the log has to say that the clock was set by so much.
func (w *clockWatch) isNews(by time.Duration) bool {
	if (by - w.said).Abs() < clockStep {
		return false
	}
	w.said = by
	return true
}
