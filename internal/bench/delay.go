package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urlserver/urlserver"
	"urlserver/urlserver/engine"
)

const (
	delayHosts   = 50_000
	delayWarmUp  = 3 * time.Second
	delaySpan    = 8 * time.Second
	crowdWarmUp  = 8 * time.Second
	delayRounds  = 20 // URLs per host, enough for both
	delayTarget  = 2 * time.Millisecond
	delayFlights = 100_000
)

// takeDelay sends 50,000 URLs a second and measures how late they are: first with hosts that start
// evenly, then with hosts that all start at once.
func takeDelay(ctx context.Context, b *bench) ([]row, error) {
	even, err := takeDelayOf(ctx, b, "ramp", "begun evenly over a second", delayWarmUp)
	if err != nil {
		return nil, err
	}
	crowd, err := takeDelayOf(ctx, b, "crowd", "all begun at once", crowdWarmUp)
	return append(even, crowd...), err
}

func takeDelayOf(ctx context.Context, b *bench, start, begun string,
	warmUp time.Duration) (rows []row, err error) {
	var addr string
	job := daemon{Slots: delayHosts, PerSec: 1, MaxInFlight: delayFlights, Batch: 10_000,
		URLs: delayHosts * delayRounds, Hosts: delayHosts}
	d, err := b.start(ctx, "daemon", &job, &addr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	s, err := b.start(ctx, "spider", &spider{Addr: addr, Conns: 1, Gap: time.Second}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := d.ask(start, "", nil); err != nil {
		return nil, err
	}
	if err := b.profileOf(d, "delay.prof"); err != nil {
		return nil, err
	}
	return measureDelay(ctx, d, s, begun, warmUp)
}

func measureDelay(ctx context.Context, d, s *child, begun string, warmUp time.Duration) ([]row, error) {
	var before, after urlserver.Status
	var cpuBefore, cpuAfter usage
	var late lateness
	if err := pause(ctx, warmUp); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := errors.Join(s.ask("time", "", nil), d.ask("status", "", &before),
		d.ask("usage", "", &cpuBefore)); err != nil {
		return nil, err
	}
	if err := pause(ctx, delaySpan); err != nil {
		return nil, err
	}
	if err := errors.Join(d.ask("status", "", &after), d.ask("usage", "", &cpuAfter),
		s.ask("late", "", &late)); err != nil {
		return nil, err
	}
	took := time.Since(start)
	rate := float64(after.Sent-before.Sent) / took.Seconds()
	cpu := (cpuAfter.CPU - cpuBefore.CPU).Seconds() / took.Seconds()
	inside := subtract(after.Delay, before.Delay)
	return delayRows(begun, rate, cpu, inside, late), nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func delayRows(begun string, rate, cpu float64, inside engine.Histogram, late lateness) []row {
	p50, p99, top := bound(inside, 0.5), bound(inside, 0.99), bound(inside, 1)
	out := late.Spread
	return []row{
		{
			what:     fmt.Sprintf("due to sent, %s URLs/s", count(rate)),
			target:   fmt.Sprintf("p99 < %v", delayTarget),
			measured: fmt.Sprintf("p50 ≤ %v, p99 ≤ %v, max ≤ %v (%.2f cores)", p50, p99, top, cpu),
			met:      judge(p99 <= delayTarget),
			how: fmt.Sprintf("%s groups at 1/s, %s, memory index, one spider in another process; the "+
				"daemon's own histogram over %v",
				count(delayHosts), begun, delaySpan),
		},
		{
			what: "the same, seen by the spider", target: fmt.Sprintf("p99 < %v", delayTarget),
			measured: fmt.Sprintf("p50 %v, p99 %v, p99.9 %v, max %v", out.P50, out.P99, out.P999, out.Max),
			met:      judge(out.P99 < delayTarget),
			how: fmt.Sprintf("a line's arrival beside that of the one before to its address plus 1 "+
				"s, %s lines; at most %v before that", count(out.Count), late.Early),
		},
	}
}

// subtract returns the counts between two readings.
func subtract(after, before engine.Histogram) engine.Histogram {
	for i := range after.Buckets {
		after.Buckets[i] -= before.Buckets[i]
	}
	after.Sum -= before.Sum
	return after
}

// bound returns the upper bound of the bucket that holds the given share of a histogram; an hour
// for the last bucket.
func bound(h engine.Histogram, share float64) time.Duration {
	total, seen := uint64(0), uint64(0)
	for _, n := range h.Buckets {
		total += n
	}
	for i, n := range h.Buckets {
		seen += n
		if float64(seen) >= share*float64(total) && i < len(engine.Bounds) {
			return engine.Bounds[i]
		}
	}
	return time.Hour
}
