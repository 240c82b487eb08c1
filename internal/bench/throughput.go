package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	throughURLs   = 1_000_000
	throughTarget = 250_000 // lines per second
)

// takeThroughput sends URLs from the memory index to spiders that answer at once, and then the same
// lines without a daemon.
func takeThroughput(ctx context.Context, b *bench) (rows []row, err error) {
	for _, c := range []struct{ hosts, spiders int }{{10_000, 1}, {10_000, 4}, {100_000, 1}, {100_000, 4}} {
		raw, err := throughWire(ctx, b, c.hosts)
		if err != nil {
			return rows, err
		}
		job := daemon{Slots: c.hosts, PerSec: 1e6, MaxInFlight: 10_000, Batch: 10_000, URLs: throughURLs,
			Hosts: c.hosts}
		got, err := throughDaemon(ctx, b, job, c.hosts, c.spiders)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{
			what: fmt.Sprintf("URLs/s to spiders over TCP: %s hosts, spiders: %d", count(c.hosts),
				c.spiders),
			target: "≥ " + count(throughTarget),
			measured: fmt.Sprintf("%s (CPU a URL: daemon %d ns, spider %d ns)",
				count(got.rate()), got.daemon.Nanoseconds()/throughURLs, got.CPU.Nanoseconds()/throughURLs),
			met:    judge(got.rate() >= throughTarget),
			beside: fmt.Sprintf("raw %s/s; ratio %.2f", count(raw.rate()), got.rate()/raw.rate()),
			how: fmt.Sprintf("1,000,000 URLs in the memory index, %s slots, no gaps, robots.txt off; "+
				"another process says DONE at once; from dialling to the last answer."+
				" raw: a process that only writes these lines, same spider", count(c.hosts)),
		})
	}
	r, err := takeFromIndex(ctx, b)
	return append(rows, r...), err
}

// takeFromIndex is takeThroughput for a daemon whose index is another daemon's, over HTTP.
func takeFromIndex(ctx context.Context, b *bench) (rows []row, err error) {
	const hosts = 10_000
	var addr, base string
	x, err := b.start(ctx, "daemon", &daemon{Slots: 1, PerSec: 1e6, URLs: throughURLs, Hosts: hosts}, &addr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.stop()) }()
	if err := errors.Join(x.ask("fill", "", nil), x.ask("http", "", &base)); err != nil {
		return nil, err
	}
	job := daemon{Slots: hosts, PerSec: 1e6, MaxInFlight: 10_000, Batch: 10_000, Index: "http://" + base + "/docindex"}
	got, err := throughDaemon(ctx, b, job, hosts, 1)
	if err != nil {
		return nil, err
	}
	return []row{{
		what:   fmt.Sprintf("the same, %s hosts, one spider, another daemon's index over HTTP", count(hosts)),
		target: "none",
		measured: fmt.Sprintf("%s (CPU a URL: daemon %d ns, spider %d ns)", count(got.rate()),
			got.daemon.Nanoseconds()/throughURLs, got.CPU.Nanoseconds()/throughURLs),
		how: "as above; the index is the memory index of a daemon in a third process",
	}}, nil
}

// through is a run with throughURLs.
type through struct {
	result
	daemon time.Duration // CPU time of the daemon's process during the run
}

func (t through) rate() float64 { return throughURLs / t.Took.Seconds() }

func throughWire(ctx context.Context, b *bench, hosts int) (t through, err error) {
	var addr string
	w, err := b.start(ctx, "wire", &wire{URLs: throughURLs, Hosts: hosts}, &addr)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	return t, answerLines(ctx, b, addr, 1, &t.result)
}

func throughDaemon(ctx context.Context, b *bench, job daemon, hosts, spiders int) (t through, err error) {
	var addr string
	d, err := b.start(ctx, "daemon", &job, &addr)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	name := fmt.Sprintf("throughput-%d-%d.prof", hosts, spiders)
	if job.Index != "" {
		name = "throughput-http.prof"
	} else if err := d.ask("fill", "", nil); err != nil {
		return t, err
	}
	if err := b.profileOf(d, name); err != nil {
		return t, err
	}
	var before, after usage
	if err := d.ask("usage", "", &before); err != nil {
		return t, err
	}
	if err := answerLines(ctx, b, addr, spiders, &t.result); err != nil {
		return t, err
	}
	err = d.ask("usage", "", &after)
	t.daemon = after.CPU - before.CPU
	return t, err
}

// answerLines lets spiders answer throughURLs lines from addr.
func answerLines(ctx context.Context, b *bench, addr string, spiders int, r *result) (err error) {
	s, err := b.start(ctx, "spider", &spider{Addr: addr, Conns: spiders, Lines: throughURLs}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return s.ask("wait", "", r)
}
