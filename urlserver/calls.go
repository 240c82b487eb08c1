package urlserver

import (
	"sync"
	"time"

	"urlserver/urlserver/engine"
)

// CallStats counts calls of one sort to the doc index.
type CallStats struct {
	Seconds engine.Histogram // of all calls
	Failed  uint64           // of them
}

// calls gathers CallStats. Safe for concurrent use; the zero value is ready.
type calls struct {
	mu    sync.Mutex // guards all below; held for memory work only
	stats CallStats
}

// note counts a call that began at the given time and ends now.
func (c *calls) note(began time.Time, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Seconds.Observe(time.Since(began))
	if failed {
		c.stats.Failed++
	}
}

func (c *calls) read() CallStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}
