package clihelp

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interrupted returns a context that ends at the first SIGINT or SIGTERM. A second one ends the process at once,
// and after stop the first one does.
func Interrupted() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
		}
		signal.Stop(signals) // before ctx ends: who sees that may send the second signal
		cancel()
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}
