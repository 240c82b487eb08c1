package spider

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// looksPerStall is how often an awake process looks at the clock in the time that counts as a
// stall.
const looksPerStall = 8

// stallWatch notices that the process stood still: it was stopped, or its machine was suspended or
// overloaded. What the daemon sent before that is then other spiders' work, since no status came
// for too long. Two looks at the clock that are further apart than most show it. A goroutine looks
// all the time, and everything that would start a request looks first, so that no old line is acted
// on before the stall is known. It is safe for concurrent use.
type stallWatch struct {
	most  time.Duration
	ended context.CancelCauseFunc // told of the stall

	mu    sync.Mutex // guards all below; held for memory work only
	last  time.Time  // the last look
	stood bool       // for good
}

// newStallWatch returns a watch whose first look is now. ended ends the conversation.
func newStallWatch(most time.Duration, ended context.CancelCauseFunc) *stallWatch {
	return &stallWatch{most: most, ended: ended, last: time.Now()}
}

// run looks until ctx ends.
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

// awake looks at the clock. False: the process has stood still since the conversation began, which
// is over.
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
