package urlserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/reservation"
	"urlserver/reservation/memory"
	"urlserver/urlserver/engine"
)

// spoilt is a store in which one host's record is broken.
type spoilt struct{ *memory.Store }

func (s spoilt) Do(ctx context.Context, calls []reservation.Call) []reservation.Answer {
	answers := s.Store.Do(ctx, calls)
	for i, c := range calls {
		if c.Host == "bad.test" {
			answers[i] = reservation.Answer{Err: fmt.Errorf("%w: the key of bad.test is a list", reservation.ErrBroken)}
		}
	}
	return answers
}

// TestBrokenRecordCostsItsHost: the host is denied and the log names it. The reservation does not
// count as away.
func TestBrokenRecordCostsItsHost(t *testing.T) {
	log := &logged{}
	r := &Reserver{Store: spoilt{memory.New(memory.Config{})}, Lease: time.Minute, Holder: "me", Log: zerolog.New(log)}
	c := &engine.LeaseBatch{Acquires: []engine.LeaseRequest{{Host: "bad.test"}, {Host: "a.test"}}}
	r.do(t.Context(), c)
	if bad, good := c.Acquires[0].Answer, c.Acquires[1].Answer; bad != engine.Denied ||
		good != engine.Granted || r.away() {
		t.Errorf("verdicts %d and %d, away: %v; want %d, %d and not", bad, good, r.away(), engine.Denied,
			engine.Granted)
	}
	if log.count("bad.test is a list") == 0 || strings.Contains(log.text.String(), "does not answer") {
		t.Errorf("the log has %s", log.text.String())
	}
}
