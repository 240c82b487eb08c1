// Command spider fetches documents for the URL server; package spider says how.
package main

import (
	"errors"
	"io"
	"log"
	"os"

	"urlserver/internal/clihelp"
)

func main() {
	log.SetOutput(io.Discard) // net/http writes there what hosts do wrong, once a fault
	ctx, stop := clihelp.Interrupted()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		clihelp.PrintError(os.Stderr, "spider", err)
	}
	os.Exit(status(err))
}

// status is the exit status for err: 0 done, 1 failed (settings refused, too), 2 wrong usage.
func status(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(usageError)):
		return 2
	}
	return 1
}
