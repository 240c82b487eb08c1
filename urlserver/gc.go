package urlserver

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// garbage is how much of it may gather: a percentage of what is in use, and so many bytes in any case, since where little is in use the
// collector would run all the time, and look at the stacks of all who are connected.
type garbage struct{ percent, least int }

var (
	// Nearly all that is in use are the store's and the slots' records, without pointers, so that collecting is cheap; with Go's
	// 100 % they would take twice their size.
	inMemory = garbage{percent: 10, least: 12 << 20}

	// So little is in memory there that a fifth of the time went into collecting with less than 25 %, and that 12 MB would be a
	// fifth of all that a million URLs may take.
	onDisk = garbage{percent: 25, least: 6 << 20}
)

// TuneGC sets the garbage collector of this process for a daemon, whose index is on disk or not, unless GOGC in the
// environment does.
func TuneGC(disk bool) {
	switch {
	case os.Getenv("GOGC") != "":
	case disk:
		onDisk.tune()
	default:
		inMemory.tune()
	}
}

// tune sets the percentage that what is in use asks for, now and after each collection: nothing holds on to its object,
// whose finalizer is the next to be told.
func (g garbage) tune() {
	debug.SetGCPercent(g.percentOf(inUse()))
	runtime.SetFinalizer(&collected{}, func(*collected) { g.tune() })
}

// collected is large enough to have an allocation of its own.
type collected struct{ _ [32]byte }

// inUse is what the collector's percentage is of, bytes.
func inUse() uint64 {
	of := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(of)
	return of[0].Value.Uint64() + of[1].Value.Uint64() + of[2].Value.Uint64()
}

// percentOf is for Go, which does not collect below 4 MB times the percentage.
func (g garbage) percentOf(inUse uint64) int {
	return max(g.percent, int(uint64(g.least)*100/max(inUse, 4<<20)))
}
