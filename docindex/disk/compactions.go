package disk

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// compactions schedules Pebble's compactions. It runs one at a time, and none before begin is
// called: Pebble's Open waits for the compactions that it starts, and after a load that is one of
// some hundred MB, which takes a second or more.
//
// The embedded scheduler has no timer that looks for waiting compactions every 100 ms. With one
// compaction at a time, the end of one starts the next.
type compactions struct {
	*pebble.ConcurrencyLimitScheduler
	began atomic.Bool // between begin and end
}

func newCompactions() *compactions {
	return &compactions{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// TrySchedule is [pebble.CompactionScheduler.TrySchedule].
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !c.began.Load() {
		return false, nil
	}
	return c.ConcurrencyLimitScheduler.TrySchedule()
}

// end allows no further compactions, but for those that follow one that runs.
func (c *compactions) end() { c.began.Store(false) }

// begin allows compactions, and starts one if Pebble waits for it: when a grant ends, the scheduler
// gives the next one to whoever waits. begin takes a grant and ends it at once.
func (c *compactions) begin() {
	c.began.Store(true)
	if ok, grant := c.ConcurrencyLimitScheduler.TrySchedule(); ok {
		grant.Done()
	}
}
