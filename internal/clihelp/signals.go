package clihelp

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameStop is how long further signals count as the first one: the command timeout sends one to the
// process and, at once, another one to its group.
const sameStop = time.Second

// Interrupted returns a context that ends at the first SIGINT or SIGTERM. One that comes more than a
// second later ends the process at once, unless it was ignored when the process began. After stop
// the first one does. A SIGINT that was ignored then stays so, as it is for what a shell script starts
// with "&".
func Interrupted() (ctx context.Context, stop func()) { return interrupted(sameStop) }

// interrupted does what [Interrupted] says; further signals count as the first one for same.
func interrupted(same time.Duration) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if !signal.Ignored(os.Interrupt) {
		signal.Notify(signals, os.Interrupt)
	}
	go func() {
		select {
		case <-signals:
			cancel()
			time.Sleep(same)
		case <-ctx.Done():
		}
		signal.Stop(signals)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}
