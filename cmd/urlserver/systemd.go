package main

import (
	"context"
	"errors"
	"time"

	"urlserver/internal/systemd"
	"urlserver/urlserver"
)

// tell notifies the service manager, if there is one.
func (s *server) tell(state string) {
	if err := s.manager.Notify(state); err != nil {
		s.log.Warn().Err(err).Str("state", state).Msg("the service manager cannot be told")
	}
}

// watchdog notifies the service manager twice a period until ctx ends, each time after answers
// returned, which asks the daemon's engine. A daemon that stops has other time limits.
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
