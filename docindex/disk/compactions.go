package disk

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// compactions schedules Pebble's compactions. It runs one at a time, and none before begin is
// called. Otherwise Pebble's Open would wait for the compactions that it starts. After a large load
// such a compaction is one of some hundred MB, and takes a second or more.
//
// The embedded scheduler has no timer that looks for waiting compactions every 100 ms. With one
// compaction at a time, the end of one starts the next.
//
// Pebble repeats a failed compaction at once and for ever. So grant.Done waits for retryAfter after
// a failure.
type compactions struct {
	*pebble.ConcurrencyLimitScheduler
	space *space
	began atomic.Bool // between begin and end
}

func newCompactions() *compactions {
	return &compactions{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// Register is [pebble.CompactionScheduler.Register].
func (c *compactions) Register(goroutines int, db pebble.DBForCompaction) {
	c.ConcurrencyLimitScheduler.Register(goroutines, grantedDB{db, c.space})
}

// TrySchedule is [pebble.CompactionScheduler.TrySchedule].
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !c.began.Load() {
		return false, nil
	}
	ok, handle := c.ConcurrencyLimitScheduler.TrySchedule()
	return ok, grant{handle, c.space}
}

// grantedDB is a database whose compactions run with a grant.
type grantedDB struct {
	pebble.DBForCompaction
	space *space
}

// Schedule is [pebble.DBForCompaction.Schedule].
func (d grantedDB) Schedule(handle pebble.CompactionGrantHandle) bool {
	return d.DBForCompaction.Schedule(grant{handle, d.space})
}

// grant is the right to run a compaction. While one has it, no other begins.
type grant struct {
	pebble.CompactionGrantHandle
	space *space
}

// Done is [pebble.CompactionGrantHandle.Done]. Pebble calls it after the compaction, without a lock.
func (g grant) Done() {
	g.space.waitAfterFailure()
	g.CompactionGrantHandle.Done()
}

// end refuses new compactions. Those that follow a running one still start.
func (c *compactions) end() { c.began.Store(false) }

// begin allows compactions, and starts one if Pebble waits for it: when a grant ends, the scheduler
// gives the next one to whoever waits. begin takes a grant and ends it at once.
func (c *compactions) begin() {
	c.began.Store(true)
	if ok, grant := c.ConcurrencyLimitScheduler.TrySchedule(); ok {
		grant.Done()
	}
}
