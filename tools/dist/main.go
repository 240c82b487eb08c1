// Command dist makes, of a built binary, what scripts/dist puts beside it: its SBOM and an OCI
// image. It is a module of its own, so that the daemon's has none of its dependencies.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

const usage = `usage: dist sbom BINARY VERSION OUT
       dist image URLSERVER HOSTRESERVATION SPIDER VERSION SETTINGS ARCH OUT
The time in them is SOURCE_DATE_EPOCH, in seconds`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w\n%s", err, usage)
	}
	made := time.Unix(seconds, 0).UTC()
	switch {
	case len(args) == 4 && args[0] == "sbom":
		return writeSBOM(args[1], args[2], args[3], made)
	case len(args) == 8 && args[0] == "image":
		return writeImage(imageOf{daemon: args[1], service: args[2], spider: args[3], version: args[4],
			settings: args[5], arch: args[6], made: made}, args[7])
	}
	return errors.New(usage)
}
