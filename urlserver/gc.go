package urlserver

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// gcPercent is how much garbage may gather, of what is in use. Nearly all of that are the store's and the slots' records,
// without pointers, so that collecting is cheap; with Go's 100 they would take twice their size.
const gcPercent = 10

// gcPercentDisk is the same where the index is on disk, and so little in memory that a fifth of the time went into
// collecting with less.
const gcPercentDisk = 25

// leastGarbage is what may gather in any case, bytes: where little is in use, a percentage of it has the collector run all the time,
// and look at the stacks of all who are connected.
const leastGarbage = 12 << 20

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
	tuneGC(percent)
}

// tuneGC sets the percentage that what is in use asks for, now and after each collection: nothing holds on to its object,
// whose finalizer is the next to be told.
func tuneGC(least int) {
	debug.SetGCPercent(gcPercentOf(inUse(), least))
	runtime.SetFinalizer(&collected{}, func(*collected) { tuneGC(least) })
}

// collected is large enough to have an allocation of its own.
type collected struct{ _ [32]byte }

// inUse is what the collector's percentage is of, bytes.
func inUse() uint64 {
	of := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(of)
	return of[0].Value.Uint64() + of[1].Value.Uint64() + of[2].Value.Uint64()
}

// gcPercentOf lets leastGarbage gather, and more where least says so. Go does not collect below 4 MB times the percentage.
func gcPercentOf(inUse uint64, least int) int {
	return max(least, int(leastGarbage*100/max(inUse, 4<<20)))
}
