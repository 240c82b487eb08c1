package sim

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// said is what a spider said that is not of a transaction.
type said struct {
	room      int
	roomAt    time.Duration // when it said that last; negative: never
	payloadAt time.Duration // when it said PAYLOAD first; negative: never
}

// hear takes a line if it is ROOM or PAYLOAD.
func (s *said) hear(now time.Duration, f []string) bool {
	switch {
	case len(f) == 1 && f[0] == "PAYLOAD":
		if s.payloadAt < 0 {
			s.payloadAt = now
		}
		return true
	case len(f) == 2 && f[0] == "ROOM":
		n, err := strconv.ParseUint(f[1], 10, 31)
		if err == nil {
			s.room, s.roomAt = int(n), now
		}
		return err == nil
	}
	return false
}

// fits reports whether the fields of a line to fetch are as the spider wants them. since is the
// earliest moment at which the daemon may have decided on the line.
func (s *said) fits(f []string, since time.Duration) bool {
	if len(f) == 4 {
		return s.payloadAt < 0 || since < s.payloadAt
	}
	n, err := strconv.ParseUint(f[1], 10, 32)
	want := "-"
	if payload := payloadOf(uint32(n)); payload != "" {
		want = base64.RawURLEncoding.EncodeToString([]byte(payload))
	}
	return err == nil && s.payloadAt >= 0 && f[4] == want && len(f) == 5
}

// payloadOf returns the payload of a document; "": it has none.
func payloadOf(n uint32) string {
	if n%4 != 1 {
		return ""
	}
	return strings.Repeat("payload\xff of "+strconv.Itoa(int(n)), 1+int(n%3))
}

// back ends a transaction whose spider has given the document back: that was no attempt.
func (o *oracle) back(tx *transaction, wait time.Duration) {
	if tx.flying && o.now-tx.at > lateAfter {
		tx.requestedAt(o.now)
	}
	tx.doc.sends--
	tx.doc.notBefore = o.now + wait
	o.finish(tx)
}
