package embedded

import (
	"math"
	"time"

	"urlserver/docindex"
)

// Last is a [docindex.LastOutcome] in two numbers, as stores keep it. The zero value is the zero
// LastOutcome.
type Last struct {
	At   uint32 // seconds since 1970; 0: not known
	What uint16 // the kind and the status; 0: not known
}

// A What has the kind plus 1 above statusBits, and below them the status plus 1. There 0 means that
// nobody reported a status.
const (
	statusBits = 12
	maxStatus  = 1<<statusBits - 2
)

const _ = uint(1<<(16-statusBits) - 1 - docindex.Kinds)

// LastOf returns the Last of an outcome that arrives at now, in ms.
func LastOf(o *docindex.Outcome, now int64) Last {
	l := LastOfKind(o.Kind, now)
	if !o.At.IsZero() {
		l.At = seconds(o.At.Unix())
	}
	if !o.NoStatus && l.What != 0 {
		l.What |= uint16(max(0, min(o.Status, maxStatus)) + 1)
	}
	return l
}

// LastOfKind returns the Last of a document that ended as kind at now, in ms, without a status.
func LastOfKind(kind docindex.Kind, now int64) Last {
	if int(kind) >= docindex.Kinds {
		return Reported(now)
	}
	l := LastBefore(uint8(kind))
	l.At = seconds(now / 1000)
	return l
}

// LastBefore returns the Last of a document of which only the kind of its end was kept. Any other
// value than a kind's returns the zero value.
func LastBefore(kind uint8) Last {
	if int(kind) >= docindex.Kinds {
		return Last{}
	}
	return Last{What: uint16(kind+1) << statusBits}
}

// Reported returns the Last of a document that a URL Frontier client reported at now, in ms.
func Reported(now int64) Last { return Last{At: seconds(now / 1000)} }

// Outcome returns l in the form of docindex.
func (l Last) Outcome() (o docindex.LastOutcome) {
	if l.At > 0 {
		o.At = time.Unix(int64(l.At), 0).UTC()
	}
	if o.Kind, o.Known = l.Kind(); !o.Known {
		return o
	}
	status := int(l.What & (1<<statusBits - 1))
	o.Status, o.NoStatus = max(status-1, 0), status == 0
	return o
}

// Kind returns how the document ended, if that is known.
func (l Last) Kind() (docindex.Kind, bool) {
	kind := int(l.What>>statusBits) - 1
	if kind < 0 || kind >= docindex.Kinds {
		return 0, false
	}
	return docindex.Kind(kind), true
}

// seconds returns a time in seconds since 1970 that is not 0, which stands for no time.
func seconds(s int64) uint32 { return uint32(max(1, min(s, math.MaxUint32))) }
