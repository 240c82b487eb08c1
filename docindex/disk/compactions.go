package disk

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// compactions is Pebble's scheduler of compactions, which runs one at a time and starts none before
// begin is called. Pebble's Open waits for the compactions that it starts itself: after a load that
// is one of some hundred MB, and takes a second or more.
//
// The scheduler within is the one that does not look every 100 ms whether there may be more: with
// one at a time its end says so.
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

// end has no compaction begin any more.
func (c *compactions) end() { c.began.Store(false) }

// begin allows compactions, and starts one if Pebble waits for that: the end of a grant, here of
// one that nothing was done with, has the scheduler look who waits.
func (c *compactions) begin() {
	c.began.Store(true)
	if ok, grant := c.ConcurrencyLimitScheduler.TrySchedule(); ok {
		grant.Done()
	}
}
