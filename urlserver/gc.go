package urlserver

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much garbage may gather, of what is in use. Nearly all of that are the store's and the slots' records,
// without pointers, so that collecting is cheap; with Go's 100 they would take twice their size.
const gcPercent = 10

// gcPercentDisk is the same where the index is on disk, and so little in memory that a fifth of the time went into
// collecting with less.
const gcPercentDisk = 25

// TuneGC sets the garbage collector of this process for a daemon, unless GOGC in the
// environment does.
func TuneGC(onDisk bool) {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := gcPercent
	if onDisk {
		percent = gcPercentDisk
	}
	debug.SetGCPercent(percent)
}
