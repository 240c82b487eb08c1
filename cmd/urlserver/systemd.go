package main

import (
	"context"
	"errors"
	"time"

	"urlserver/internal/systemd"
	"urlserver/urlserver"
)

// tell tells the service manager, where there is one.
func (s *server) tell(state string) {
	if err := s.manager.Notify(state); err != nil {
		s.log.Warn().Err(err).Str("state", state).Msg("the service manager cannot be told")
	}
}

// watchdog tells the service manager twice a period that answers, which asks the daemon's
// owner, is answered, until ctx ends. A daemon that stops has its own bounds of time.
func (s *server) watchdog(ctx context.Context, period time.Duration, answers func(context.Context) error) {
	half := period / 2
	ticks := time.NewTicker(half)
	defer ticks.Stop()
	for {
		within, end := context.WithTimeout(ctx, half)
		if err := answers(within); err == nil || errors.Is(err, urlserver.ErrStopped) {
			s.tell(systemd.Watchdog)
		}
		end()
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}
