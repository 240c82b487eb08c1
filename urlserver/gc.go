package urlserver

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// gcTuner sets how much garbage may accumulate before a collection: a percentage of the live heap,
// and at least a number of bytes. Without the latter a small heap would be collected all the time,
// and each collection scans the stacks of all connections. Memory without pointers adds next to
// nothing to the cost of a collection. So the part of it beyond cheapFrom has a percentage of its
// own, cheap.
type gcTuner struct{ percent, cheap, least int }

const cheapFrom = 64 << 20 // bytes

var (
	// Nearly all of the heap is records of the store and the slots. They have no pointers, so a
	// collection is cheap. Go's default of 100 % would double the memory.
	inMemory = gcTuner{percent: 10, cheap: 10, least: 12 << 20}

	// With an index on disk the heap is small: below 25 % a fifth of the CPU time went into
	// collections, and 12 MB would be a fifth of what a million URLs may take. With many URLs most of it
	// is queues, names and blocks of tables: a collection of 400 MB takes 5 ms of CPU.
	onDisk = gcTuner{percent: 25, cheap: 10, least: 6 << 20}
)

// TuneGC tunes the garbage collector of this process for a daemon. disk says whether its index is
// on disk. It does nothing if the environment sets GOGC.
func TuneGC(disk bool) {
	switch {
	case os.Getenv("GOGC") != "":
	case disk:
		onDisk.tune()
	default:
		inMemory.tune()
	}
}

// tune sets the percentage for the live heap, now and after each collection. The runtime calls the
// finalizer of an unreachable object after each collection.
func (g gcTuner) tune() {
	debug.SetGCPercent(g.percentOf(inUse()))
	runtime.SetFinalizer(&afterGC{}, func(*afterGC) { g.tune() })
}

// afterGC is the object whose finalizer tunes. It is too large for the allocator to combine with
// others.
type afterGC struct{ _ [32]byte }

// inUse returns the number of bytes that the collector's percentage refers to, and how many have no pointers.
func inUse() (all, plain uint64) {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"},
		{Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}
	metrics.Read(s)
	live, scanned := s[0].Value.Uint64(), s[1].Value.Uint64()
	return live + s[2].Value.Uint64() + s[3].Value.Uint64(), live - min(live, scanned)
}

// percentOf returns the percentage for a live heap, of which so many bytes have no pointers. Go's collector
// treats a heap below 4 MB as one of 4 MB.
func (g gcTuner) percentOf(inUse, plain uint64) int {
	cheap := plain - min(plain, cheapFrom)
	garbage := (inUse-cheap)*uint64(g.percent) + cheap*uint64(g.cheap)
	return int(max(garbage, uint64(g.least)*100) / max(inUse, 4<<20))
}
