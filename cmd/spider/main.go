// Command spider fetches documents for the URL server; package spider says how.
package main

import (
	"context"
	"io"
	"log"
	"os"

	"urlserver/internal/clihelp"
)

func main() {
	log.SetOutput(io.Discard) // net/http writes there what hosts do wrong, once a fault
	os.Exit(clihelp.Main("spider", func(ctx context.Context) error {
		return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}))
}
