// Package trace holds the way of a sampled document through the daemon: its phases and its outcome.
//
// It is pure: no goroutine, lock, clock or I/O. Callers pass the time.
package trace

import (
	"encoding/binary"
	"time"
)

// Phase is where a document is, or what it waits for.
type Phase uint8

const (
	Index    Phase = iota // from the request to the doc index until the engine takes the answer
	DNS                   // look-up of the host's address; absent if the address was known
	Leftover              // the host group has no slot
	Slot                  // the host group has a slot; others, the gap or robots.txt come first
	Spider                // at a spider
	Delivery              // the doc index has not acknowledged the outcome yet
)

var words = [...]string{"index", "dns", "leftover", "slot", "spider", "delivery"}

func (p Phase) String() string { return words[p] }

// Span is one phase. Times count from the daemon's start, on a monotonic clock.
type Span struct {
	Phase    Phase
	From, To time.Duration
	Spider   string // in phase Spider: its address
	End      string // in phase Spider: why the phase ended
}

// Trace is the way of one document. It has at least one span. Each span begins when the one before
// it ends.
type Trace struct {
	DocID, Host string
	Group       string // address or name of the host group; "" if there was none
	Spans       []Span
	Dropped     int    // spans beyond MaxSpans
	Outcome     string // or how else the document left the daemon
	Status      int    // HTTP status that the spider reported; 0: none
	Attempts    int    // transactions
}

// MaxSpans bounds the spans of a Trace. The last one, Delivery, is in addition.
const MaxSpans = 64

// Add appends a span, or counts it as dropped.
func (t *Trace) Add(s Span) {
	if len(t.Spans) >= MaxSpans && s.Phase != Delivery {
		t.Dropped++
		return
	}
	t.Spans = append(t.Spans, s)
}

// Ratio is how many of 1<<53 documents are sampled. The zero value samples none.
type Ratio uint64

const whole = 1 << 53

// RatioOf returns the Ratio for a part of all documents, from 0 to 1.
func RatioOf(part float64) Ratio { return Ratio(part * whole) }

// Samples reports whether the document with this ID is sampled. All daemons sample the same
// documents.
func (r Ratio) Samples(id []byte) bool { return r > 0 && Ratio(hash(id)>>11) < r }

// hash mixes eight bytes at a time with the finalizer of MurmurHash3 (A. Appleby).
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
