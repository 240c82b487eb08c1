package urlserver

import (
	"sync"
	"time"
)

const logsPerSecond = 5

// limiter bounds how often something is logged. Safe for concurrent use; the zero value is ready.
type limiter struct {
	mu      sync.Mutex // guards all below
	second  int64
	logged  int
	skipped int
}

// allow reports whether to log now, and how many entries were not logged since the last one.
func (l *limiter) allow(now time.Time) (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Unix() != l.second {
		l.second, l.logged = now.Unix(), 0
	}
	if l.logged == logsPerSecond {
		l.skipped++
		return 0, false
	}
	l.logged++
	skipped, l.skipped = l.skipped, 0
	return skipped, true
}
