package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"urlserver/urlserver"
)

const (
	crawlDocs    = 1_000_000
	manyCrawls   = 1000
	crawlDomains = 100_000
	infoCalls    = 200 // of each kind
	infoTarget   = 10 * time.Millisecond
	stopHosts    = 1000 // hosts of the crawl that is stopped
	otherHosts   = 2000 // hosts of other crawls
	otherRounds  = 100  // URLs per host, enough until the stop
	stopWarmUp   = 5 * time.Second
	stopAfter    = time.Second // how long other crawls are measured after a stop
	stopTarget   = 5 * time.Second
	otherTarget  = 20 * time.Millisecond
	fillPatience = 5 * time.Minute
)

// takeCrawls measures requests to crawl, requests for crawls with many pending documents, and the
// stop of one crawl while others go on.
func takeCrawls(ctx context.Context, b *bench) (rows []row, err error) {
	if rows, err = takeCrawlRequests(ctx, b); err != nil {
		return rows, err
	}
	for _, kind := range []string{"memory", "disk"} {
		info, err := takeInfo(ctx, b, kind)
		rows = append(rows, info...)
		if err != nil {
			return rows, err
		}
		stop, err := takeStop(ctx, b, kind)
		rows = append(rows, stop...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// startControlled starts a daemon with crawl control and an index of a kind. stop also removes its
// files.
func startControlled(ctx context.Context, b *bench, kind string, job daemon) (d *child, addr string,
	stop func() error, err error) {
	dir := ""
	if kind == "disk" {
		if dir, err = os.MkdirTemp("", "bench"); err != nil {
			return nil, "", nil, err
		}
		job.Disk = dir
	}
	remove := func() error { return os.RemoveAll(dir) }
	if d, err = b.start(ctx, "daemon", &job, &addr); err != nil {
		return nil, "", nil, errors.Join(err, remove())
	}
	return d, addr, func() error { return errors.Join(d.stop(), remove()) }, nil
}

// asked is the time that calls of crawl control have taken.
type asked struct {
	Spread spread
	CPU    time.Duration // of the daemon's process, for all calls
	Purged uint64
}

func takeInfo(ctx context.Context, b *bench, kind string) (rows []row, err error) {
	job := daemon{Slots: 4096, PerSec: 1, MaxInFlight: 100, Batch: 1000, CrawlURLs: crawlDocs,
		CrawlHosts: crawlDomains, Crawls: manyCrawls}
	d, _, stop, err := startControlled(ctx, b, kind, job)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := d.ask("crawls", "", nil); err != nil {
		return nil, err
	}
	for _, of := range []struct{ what, id string }{{"an application", ""}, {"a crawl", "c7"}} {
		var a asked
		if err := d.ask("info", of.id, &a); err != nil {
			return rows, err
		}
		rows = append(rows, row{
			what:     fmt.Sprintf("info about %s, index: %s", of.what, kind),
			target:   fmt.Sprintf("p99 < %v", infoTarget),
			measured: fmt.Sprintf("p50 %v, p99 %v, max %v", a.Spread.P50, a.Spread.P99, a.Spread.Max),
			met:      judge(a.Spread.P99 < infoTarget),
			how: fmt.Sprintf("%s pending in %s crawls of an application and %s domains; %d calls one "+
				"after the other in the daemon's process, %v of CPU each",
				count(crawlDocs), count(manyCrawls), count(crawlDomains), a.Spread.Count,
				(a.CPU / infoCalls).Round(time.Microsecond)),
		})
	}
	return rows, nil
}

// takeStop stops a crawl while a spider measures how late the lines of the other crawls are.
func takeStop(ctx context.Context, b *bench, kind string) (rows []row, err error) {
	job := daemon{
		Slots: 4096, PerSec: 1, MaxInFlight: 10_000, Batch: 10_000, URLs: otherHosts * otherRounds,
		Hosts:     otherHosts,
		CrawlURLs: crawlDocs, CrawlHosts: stopHosts, Crawls: 1,
	}
	d, addr, end, err := startControlled(ctx, b, kind, job)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	for _, step := range []string{"crawls", "ramp"} {
		if err := d.ask(step, "", nil); err != nil {
			return nil, err
		}
	}
	s, err := b.start(ctx, "spider", &spider{Addr: addr, Conns: 1, Gap: time.Second}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if _, err := await(ctx, d, fillPatience,
		func(s *urlserver.Status) bool { return s.Sent > 2*(otherHosts+stopHosts) }); err != nil {
		return nil, err
	}
	if err := pause(ctx, stopWarmUp); err != nil {
		return nil, err
	}
	if err := b.profileOf(d, "stop-"+kind+".prof"); err != nil {
		return nil, err
	}
	var before, during lateness
	var first, second usage
	var a asked
	if err := errors.Join(s.ask("time", "", nil), d.ask("usage", "", &first), pause(ctx, stopWarmUp),
		d.ask("usage", "", &second),
		s.ask("late", "", &before), s.ask("time", "", nil), d.ask("stop", "c0", &a), pause(ctx, stopAfter),
		s.ask("late", "", &during)); err != nil {
		return nil, err
	}
	return stopRows(kind, &a, second.CPU-first.CPU, before.Spread, during.Spread), nil
}

// stopRows returns the rows about a stop. sending is the daemon's CPU time in the warm-up.
func stopRows(kind string, a *asked, sending time.Duration, before, during spread) []row {
	return []row{
		{
			what: fmt.Sprintf("stop of a crawl, index: %s", kind), target: fmt.Sprintf("< %v", stopTarget),
			measured: fmt.Sprintf("%v (%v of CPU in the daemon)", a.Spread.Max.Round(time.Millisecond),
				a.CPU.Round(time.Millisecond)),
			met:    judge(a.Spread.Max < stopTarget),
			beside: fmt.Sprintf("for %v before it: %v of CPU", stopWarmUp, sending.Round(time.Millisecond)),
			how: fmt.Sprintf(
				"%s documents purged from the index, leftover and slots, until the reply is there",
				count(a.Purged)),
		},
		{
			what:     fmt.Sprintf("due to sent of others meanwhile, index: %s", kind),
			target:   fmt.Sprintf("p99 < %v", otherTarget),
			measured: fmt.Sprintf("p50 %v, p99 %v, max %v", during.P50, during.P99, during.Max),
			met:      judge(during.P99 < otherTarget),
			beside:   fmt.Sprintf("for %v before the stop: p99 %v", stopWarmUp, before.P99),
			how: fmt.Sprintf("a line's arrival at the spider beside that of the one before to its "+
				"address plus 1 s, %s lines to %s addresses, begun evenly over a "+
				"second; until %v after the reply",
				count(during.Count), count(otherHosts), stopAfter),
		},
	}
}
