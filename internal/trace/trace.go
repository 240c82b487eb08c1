// Package trace is a sampled document's way through the daemon: what it waited for, who had it, and how it ended.
//
// Pure: no goroutine, lock, clock or I/O; time is an argument.
package trace

import (
	"encoding/binary"
	"time"
)

// Phase is what a document waits for, or where it is.
type Phase uint8

const (
	Index    Phase = iota // the doc index is asked, and what it has answered is taken
	DNS                   // the address of its host is looked up; none where it was known
	Leftover              // its host group has no slot
	Slot                  // its host group has one, and others, the pace or robots.txt come first
	Spider                // at a spider
	Delivery              // its outcome is not with the doc index yet
)

var words = [...]string{"index", "dns", "leftover", "slot", "spider", "delivery"}

func (p Phase) String() string { return words[p] }

// Step is one phase. Times are since the daemon's start, on a monotonic clock.
type Step struct {
	Phase    Phase
	From, To time.Duration
	Spider   string // of Spider: its address
	End      string // of Spider: why it is there no more
}

// Journey is a document's way. Its steps, of which there is one at least, follow each other without a gap.
type Journey struct {
	DocID, Host string
	Group       string // address or name of its host group; "": it never had one
	Steps       []Step
	Left        int    // steps beyond MaxSteps, left out
	Outcome     string // or what else took it from the daemon
	Status      int    // HTTP status that the spider told; 0: none
	Attempts    int    // sends
}

// MaxSteps bounds the steps of a Journey but for the last one.
const MaxSteps = 64

// Add adds a step; the last one, Delivery, always finds room.
func (j *Journey) Add(s Step) {
	if len(j.Steps) >= MaxSteps && s.Phase != Delivery {
		j.Left++
		return
	}
	j.Steps = append(j.Steps, s)
}

// Share is how many documents are sampled, of 1<<53. The zero value samples none.
type Share uint64

const whole = 1 << 53

// ShareOf returns the Share for a part of all documents, from 0 to 1.
func ShareOf(part float64) Share { return Share(part * whole) }

// Samples reports whether the document with this ID is one. All daemons sample the same ones.
func (s Share) Samples(id []byte) bool { return s > 0 && Share(hash(id)>>11) < s }

// hash takes eight bytes at a time, and mixes them as MurmurHash3 does in the end.
func hash(id []byte) uint64 {
	h := uint64(len(id))
	for ; len(id) >= 8; id = id[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(id))
	}
	var last [8]byte
	copy(last[:], id)
	return mix(h ^ binary.LittleEndian.Uint64(last[:]))
}

func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
