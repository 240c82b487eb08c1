package urlserver

import (
	"sync"
	"time"

	"urlserver/urlserver/engine"
)

// CallStats counts the calls of one kind to the doc index.
type CallStats struct {
	Seconds engine.Histogram // of all calls
	Failed  uint64           // how many of them failed
}

// callStats collects CallStats. It is safe for concurrent use. The zero value is ready to use.
type callStats struct {
	mu    sync.Mutex // guards all below; held for memory work only
	stats CallStats
}

// note counts a call that began at the given time and ends now.
func (c *callStats) note(began time.Time, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Seconds.Observe(time.Since(began))
	if failed {
		c.stats.Failed++
	}
}

func (c *callStats) read() CallStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}
