package spider

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// looksPerStall is how often a running process reads the clock in the time that counts as a stall.
const looksPerStall = 8

// stallWatch detects that the process was stopped, or that its machine was suspended or overloaded.
// Other spiders then have the documents that the daemon sent before, because no status arrived for
// too long. A stall shows as two readings of the clock that are further apart than most. A
// goroutine reads the clock all the time, and so does everything that would start a request, so
// that no old line is handled before the stall is known. Safe for concurrent use.
type stallWatch struct {
	most  time.Duration
	ended context.CancelCauseFunc // called with the cause after a stall

	mu    sync.Mutex // guards all below; held for memory work only
	last  time.Time  // the last reading of the clock
	stood bool       // there was a stall
}

// newStallWatch returns a watch that reads the clock now. ended ends the conversation.
func newStallWatch(most time.Duration, ended context.CancelCauseFunc) *stallWatch {
	return &stallWatch{most: most, ended: ended, last: time.Now()}
}

// run reads the clock until ctx ends.
func (w *stallWatch) run(ctx context.Context) {
	ticker := time.NewTicker(w.most / looksPerStall)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.awake()
		}
	}
}

// awake reads the clock. It returns false if there was a stall since the conversation began, which
// ends then.
func (w *stallWatch) awake() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	// The monotonic clock stops while a machine is suspended; the wall clock does not.
	gap := max(now.Sub(w.last), now.Round(0).Sub(w.last.Round(0)))
	if gap > w.most && !w.stood {
		w.stood = true
		w.ended(fmt.Errorf(
			"this process stood still for %v, over half of the status timeout: lines read before are "+
				"dropped", gap.Round(time.Millisecond)))
	}
	w.last = now
	return !w.stood
}
