package urlserver

import (
	"context"
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"urlserver/docindex/memory"
	"urlserver/internal/resolver"
)

// TestReconfigureOfACallerThatGivesUp changes the user agent. The caller's context ends before the
// run loop takes the event. The new settings apply all the same, to robots.txt from the engine's
// next step on.
func TestReconfigureOfACallerThatGivesUp(t *testing.T) {
	res, err := resolver.New(resolver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	store := memory.New()
	d := New(bubbleConfig(nil), Parts{Index: store, Store: store, Resolver: res, Log: zerolog.Nop()})
	cfg := d.Settings()
	cfg.Robots.UserAgent = "another"
	client := d.robots.Load()
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error)
	go func() {
		_, _, err := d.Reconfigure(ctx, cfg)
		asked <- err
	}()
	change := <-d.events
	cancel()
	change(d.advance())
	if got := d.policy.Load().Agent; got != "another" || d.robots.Load() == client {
		t.Errorf("the engine has the user agent %q, and robots.txt is read for %q", "another", got)
	}
	if err := <-asked; err != nil {
		t.Errorf("Reconfigure: %v", err)
	}
	if got := d.Settings().Robots.UserAgent; got != "another" {
		t.Errorf("the daemon's settings have the user agent %q; the engine has %q", got, "another")
	}
	if _, _, err := d.Reconfigure(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("Reconfigure by a caller that gave up before: %v; want %v", err, context.Canceled)
	}
}
