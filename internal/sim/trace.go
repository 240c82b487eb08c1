package sim

import (
	"time"

	"urlserver/docindex"
)

// trace is a hash of all output of the daemon, in order. Two runs with equal traces did the same.
type trace struct {
	hash  uint64
	steps int
}

func (t *trace) number(n uint64) {
	t.hash = (t.hash ^ n) * 0x9e3779b97f4a7c15
	t.hash ^= t.hash >> 29
}

func (t *trace) text(now time.Duration, s string) {
	t.number(uint64(now))
	t.number(hashOf(s))
}

func (t *trace) outcome(now time.Duration, o docindex.Outcome) {
	t.text(now, string(o.DocID))
	t.number(uint64(o.Kind)<<32 | uint64(o.Status)<<8 | uint64(o.Attempts))
}
