package urlserver

import (
	"context"
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"urlserver/docindex/memory"
	"urlserver/internal/resolver"
)

// TestReconfigureFetches changes the user agent. From the engine's next step on robots.txt is fetched for the new one: what
// it wants at once is read for nobody else. Who asked has given up meanwhile, so that nothing but the event does that.
func TestReconfigureFetches(t *testing.T) {
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
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Fatalf("Reconfigure: %v; want %v", err, context.Canceled)
	}
	change(d.tell())
	if got := d.policy.Load().Agent; got != "another" || d.robots.Load() == client {
		t.Errorf("the engine has the user agent %q, and robots.txt is read for %q", "another", got)
	}
}
