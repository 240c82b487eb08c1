package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"urlserver/urlserver"
)

const (
	heldURLs     = 1_000_000
	heldAddrs    = 4000 // of 4096 slots: the daemon asks for more while a slot is empty
	heapTarget   = 64   // bytes per URL beside the URL itself
	rssTarget    = 160
	heldPatience = 2 * time.Minute
	lookInterval = 100 * time.Millisecond
	idSize       = 7 // bytes
)

// takeHeld measures the memory of a daemon that holds URLs and cannot send them.
func takeHeld(ctx context.Context, b *bench) (rows []row, err error) {
	for _, hosts := range []int{10_000, 100_000} {
		w, err := weigh(ctx, b, hosts)
		if err != nil {
			return rows, err
		}
		rows = append(rows, w.rows(hosts)...)
	}
	return rows, nil
}

// weight is the memory of a daemon.
type weight struct {
	status urlserver.Status
	took   time.Duration
	full   usage      // when it held all URLs
	swept  collection // after a collection then
}

func weigh(ctx context.Context, b *bench, hosts int) (w weight, err error) {
	x := &index{urls: heldURLs, hosts: hosts, addrs: heldAddrs}
	base, stopIndex, err := x.serve()
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, stopIndex()) }()
	var dnsAddr, addr string
	dns, err := b.start(ctx, "dns", &names{Addrs: heldAddrs}, &dnsAddr)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, dns.stop()) }()
	d, err := b.start(ctx, "daemon", &daemon{Slots: 4096, PerSec: 0.5, MaxInFlight: 10_000, Batch: 10_000,
		Index: base, DNS: dnsAddr}, &addr)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := w.read(ctx, d); err != nil || b.profiles == "" {
		return w, err
	}
	return w, d.ask("heap", filepath.Join(b.profiles, fmt.Sprintf("held-%d.heap", hosts)), nil)
}

// read waits until the daemon holds all URLs, and measures its memory.
func (w *weight) read(ctx context.Context, d *child) (err error) {
	start := time.Now()
	w.status, err = await(ctx, d, heldPatience, func(s *urlserver.Status) bool {
		return s.Slots.Held == heldURLs && s.Slots.Unresolved == 0
	})
	if err != nil {
		return err
	}
	w.took = time.Since(start)
	return errors.Join(d.ask("usage", "", &w.full), d.ask("collect", "", &w.swept))
}

// await reads a daemon's status until it is as wanted.
func await(ctx context.Context, d *child, most time.Duration,
	done func(*urlserver.Status) bool) (s urlserver.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ticks := time.NewTicker(lookInterval)
	defer ticks.Stop()
	for {
		s = urlserver.Status{}
		if err := d.ask("status", "", &s); err != nil || done(&s) {
			return s, err
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return s, fmt.Errorf(
				"the daemon does not come to where it should: held %d, unresolved %d, last error %q: %w",
				s.Slots.Held, s.Slots.Unresolved, s.IndexError, ctx.Err())
		}
	}
}

func (w *weight) rows(hosts int) []row {
	title := fmt.Sprintf("1,000,000 URLs held, %s hosts: ", count(hosts))
	over := float64(w.swept.Live)/heldURLs - urlSize
	rss := float64(w.full.RSS) / heldURLs
	return []row{
		{
			what: title + "live heap a URL over its own bytes", target: fmt.Sprintf("≤ %d B", heapTarget),
			measured: fmt.Sprintf("%.1f B (%.1f B over URL and DOC_ID)", over, over-idSize),
			met:      judge(over <= heapTarget),
			how: fmt.Sprintf("URLs of %d B, IDs of %d B, from an index over HTTP; hosts on %s addresses "+
				"by DNS; 4096 slots, no spider: %s in slots, %s in leftover, taken in %.1f s;"+
				" the daemon's whole heap after runtime.GC",
				urlSize, idSize, count(heldAddrs), count(heldURLs-w.status.Slots.Leftover),
				count(w.status.Slots.Leftover), w.took.Seconds()),
		},
		{
			what: title + "RSS a URL", target: fmt.Sprintf("≤ %d B", rssTarget),
			measured: fmt.Sprintf("%.0f B (at most %.0f B); %.0f B of it are pages of the program's file", rss,
				float64(w.full.PeakRSS)/heldURLs, float64(w.full.FileRSS)/heldURLs),
			met: judge(rss <= rssTarget),
			how: "VmRSS, VmHWM and RssFile of that process when it had taken all, before the forced collection",
		},
		{
			what: title + "garbage collection",
			measured: fmt.Sprintf("pause %v, marking %v of CPU, %v from start to end", w.swept.Pause,
				w.swept.Mark.Round(10*time.Microsecond), w.swept.Wall.Round(10*time.Microsecond)),
			how: "a forced one in that process; runtime.MemStats, runtime/metrics",
		},
	}
}
