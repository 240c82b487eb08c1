package redis

import (
	"context"
	"strconv"
	"time"
)

// learnTime asks Redis for its time. The store compares all ends, such as those of leases and
// crawls, with that clock, because the clocks of daemons may differ.
func (s *Store) learnTime(ctx context.Context) error {
	if s.clock != nil {
		return nil
	}
	c, err := s.connected(ctx)
	if err != nil {
		return err
	}
	began, asked := s.local(), time.Now()
	parts, err := c.Do(ctx, c.B().Time().Build()).AsStrSlice()
	if err != nil {
		return s.wrap(err)
	}
	if len(parts) != 2 {
		return errStrange
	}
	seconds, _ := strconv.ParseInt(parts[0], 10, 64)
	micros, _ := strconv.ParseInt(parts[1], 10, 64)
	s.ahead.Store(int64(time.UnixMicro(seconds*1e6 + micros).Sub(began.Add(time.Since(asked) / 2))))
	return nil
}

// byRedis converts a time of the daemon's clock to Redis' clock.
func (s *Store) byRedis(at time.Time) time.Time { return at.Add(time.Duration(s.ahead.Load())) }

// Now returns the time by Redis' clock. [Store.CrawlSettings] compares the two clocks.
func (s *Store) Now() time.Time {
	if s.clock != nil {
		return time.UnixMicro(s.clock())
	}
	return s.byRedis(s.local())
}
