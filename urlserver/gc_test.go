package urlserver

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

func TestGCPercent(t *testing.T) {
	for _, c := range []struct {
		name  string
		inUse uint64
		plain uint64
		tuner gcTuner
		want  int
	}{
		{name: "next to nothing", inUse: 1, tuner: inMemory, want: 300},
		{name: "little", inUse: 64 << 20, tuner: inMemory, want: 18},
		{name: "next to nothing, on disk", inUse: 1, tuner: onDisk, want: 150},
		{name: "little, on disk", inUse: 64 << 20, plain: 64 << 20, tuner: onDisk, want: 25},
		{name: "much", inUse: 160 << 20, tuner: inMemory, want: 10},
		{name: "very much", inUse: 64 << 30, tuner: inMemory, want: 10},
		{name: "very much without pointers", inUse: 64 << 30, plain: 60 << 30, tuner: inMemory, want: 10},
		{name: "much with pointers, on disk", inUse: 400 << 20, tuner: onDisk, want: 25},
		{name: "much without pointers, on disk", inUse: 400 << 20, plain: 364 << 20, tuner: onDisk, want: 13},
	} {
		if got := c.tuner.percentOf(c.inUse, c.plain); got != c.want {
			t.Errorf("%s: %d %%; want %d", c.name, got, c.want)
		}
	}
}

// TestCollectionsAreFew runs in a process of its own, because the collector stays tuned.
func TestCollectionsAreFew(t *testing.T) {
	const inside = "URLSERVER_TEST_GC"
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCollectionsAreFew$")
		cmd.Env = append(os.Environ(), inside+"=1", "GOGC=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	TuneGC(false)
	const piece = 64 << 10
	most := 16 * inMemory.least
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range most / piece {
		sink = make([]byte, piece)
	}
	runtime.ReadMemStats(&after)
	if n := after.NumGC - before.NumGC; n < 3 || n > 32 { // the heap at a collection may be twice the later one
		t.Errorf("%d collections of %d MB of garbage; want 3 to 32", n, most>>20)
	}
}

var sink []byte
