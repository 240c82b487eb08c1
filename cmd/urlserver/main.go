// Command urlserver is the URL server: a daemon that decides which URL may be fetched now,
// and its operator's tools.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	syscall.Umask(0o077) // an index and an export show what somebody is interested in
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // first, so that a second signal ends the process at once
		cancel()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
