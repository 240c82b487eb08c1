// Command urlserver is the URL server: a daemon that decides which URL may be fetched now,
// and its operator's tools.
package main

import (
	"os"
	"syscall"

	"urlserver/internal/clihelp"
)

func main() {
	syscall.Umask(0o077) // an index and an export show what somebody is interested in
	ctx, _ := clihelp.Interrupted()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
