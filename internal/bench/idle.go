package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urlserver/urlserver"
)

const (
	idleHosts  = 100_000
	idlePerSec = 0.001 // nothing is due for a thousand seconds
	idleSettle = 5 * time.Second
	idleSpan   = 10 * time.Second
	idleTarget = 0.001 // CPU seconds per second
)

// takeIdle measures what slots without due documents cost, compared with a daemon with one slot.
func takeIdle(ctx context.Context, b *bench) (rows []row, err error) {
	many, stopMany, err := startIdle(ctx, b, idleHosts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopMany()) }()
	one, stopOne, err := startIdle(ctx, b, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopOne()) }()
	cpu, err := idleCPU(ctx, many, one)
	if err != nil {
		return nil, err
	}
	return []row{{
		what:     "CPU of " + count(idleHosts) + " slots in which nothing is due",
		target:   fmt.Sprintf("≤ %.3f s/s", idleTarget),
		measured: fmt.Sprintf("%.5f s/s", cpu[0]), met: judge(cpu[0] <= idleTarget),
		beside: fmt.Sprintf("one slot: %.5f s/s", cpu[1]),
		how: fmt.Sprintf("%s documents held, gaps of 1000 s, a spider connected; user and system time "+
			"of the daemon's process over %v, %v after it had taken them",
			count(2*idleHosts), idleSpan, idleSettle),
	}}, nil
}

// startIdle starts a daemon that holds two documents of each host and sends none, and a spider.
func startIdle(ctx context.Context, b *bench, hosts int) (d *child, stop func() error, err error) {
	var addr string
	d, err = b.start(ctx, "daemon", &daemon{Slots: hosts, PerSec: idlePerSec, MaxInFlight: 10_000,
		Batch: 10_000, URLs: 2 * hosts, Hosts: hosts}, &addr)
	if err != nil {
		return nil, nil, err
	}
	s, err := b.start(ctx, "spider", &spider{Addr: addr, Conns: 1}, nil)
	if err != nil {
		return nil, nil, errors.Join(err, d.stop())
	}
	stop = func() error { return errors.Join(s.stop(), d.stop()) }
	if err := d.ask("fill", "", nil); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	if _, err := await(ctx, d, heldPatience,
		func(s *urlserver.Status) bool { return s.Slots.Used == hosts && len(s.Spiders) == 1 }); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return d, stop, nil
}

// idleCPU returns the CPU seconds per second of idle daemons.
func idleCPU(ctx context.Context, daemons ...*child) ([]float64, error) {
	if err := pause(ctx, idleSettle); err != nil {
		return nil, err
	}
	before, err := usages(daemons)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, idleSpan); err != nil {
		return nil, err
	}
	after, err := usages(daemons)
	if err != nil {
		return nil, err
	}
	shares := make([]float64, len(daemons))
	for i := range shares {
		shares[i] = (after[i].CPU - before[i].CPU).Seconds() / idleSpan.Seconds()
	}
	return shares, nil
}

func usages(of []*child) ([]usage, error) {
	all := make([]usage, len(of))
	for i, c := range of {
		if err := c.ask("usage", "", &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
