package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime/pprof"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/httpclient"
	"urlserver/internal/resolver"
	"urlserver/reservation/memory"
	"urlserver/reservation/redis"
	"urlserver/urlserver"
)

// daemon is the role of the URL server, with default settings except these.
type daemon struct {
	Slots       int
	PerSec      float64
	MaxInFlight int
	Batch       int
	Index       string // base URL of the index; "": its own, which "fill" and "crawls" fill
	DNS         string // address of the DNS server; "": none is needed
	URLs, Hosts int    // for "fill"
	Disk        string // folder of its own index; "": in memory
	Reservation string // "memory", or the address of Redis; "": none
	Shared      string // address of the Redis that has its index; "": none

	CrawlURLs, CrawlHosts, Crawls int // for "crawls"; the first also for "requests"

	resolver   *resolver.Resolver
	store      docindex.Store
	crawls     docindex.Store // store, if crawl control is measured
	daemon     *urlserver.Daemon
	controller *crawlcontrol.Controller

	closeStore func() error // nil: nothing to close

	cancel  context.CancelFunc
	ended   chan error
	unwatch func() error // ends its HTTP server; nil: there is none
}

// open returns the address that spiders connect to.
func (d *daemon) open(ctx context.Context) (ready any, err error) {
	urlserver.TuneGC(d.Disk != "")
	cfg := configs.Default()
	cfg.QueueCount, cfg.ReqHostPerSec = d.Slots, d.PerSec
	cfg.Spider.Listen, cfg.Spider.MaxInFlight = "127.0.0.1:0", d.MaxInFlight
	cfg.DocIndex.Batch = d.Batch
	cfg.Robots.Enabled = false // fetching a robots.txt per host would measure the web server
	parts := urlserver.Parts{Log: zerolog.New(os.Stderr).Level(zerolog.WarnLevel)}
	if err := d.connect(cfg, &parts); err != nil {
		return nil, err
	}
	d.share(cfg.Reservation, &parts)
	l, err := urlserver.Listen(cfg.Spider.Listen, nil)
	if err != nil {
		return nil, err
	}
	d.daemon = urlserver.New(cfg, parts)
	if d.crawls != nil {
		d.controller = crawlcontrol.NewController(d.crawls, d.daemon, parts.Log)
	}
	ctx, d.cancel = context.WithCancel(ctx)
	d.ended = make(chan error, 1)
	go func() { d.ended <- d.daemon.Run(ctx, l) }()
	return l.Addr().String(), nil
}

// connect makes the parts of the daemon.
func (d *daemon) connect(cfg configs.Config, parts *urlserver.Parts) (err error) {
	servers := []string{}
	if d.DNS != "" {
		servers = append(servers, d.DNS)
	}
	d.resolver, err = resolver.New(resolver.Config{
		Servers: servers, Timeout: cfg.Resolver.Timeout, Attempts: cfg.Resolver.Attempts,
		Concurrency: cfg.Resolver.Concurrency, MinTTL: cfg.Resolver.MinTTL, MaxTTL: cfg.Resolver.MaxTTL,
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, HostsFile: "-",
	})
	if err != nil {
		return err
	}
	parts.Resolver = d.resolver
	if d.Index != "" {
		parts.Index, err = httpclient.New(httpclient.Config{URL: d.Index})
		return err
	}
	if err := d.openStore(cfg.Reservation, parts.Log); err != nil {
		return err
	}
	parts.Index, parts.Store = d.store, d.store
	return nil
}

// share makes the daemon reserve groups, as if there were other daemons.
func (d *daemon) share(cfg configs.Reservation, parts *urlserver.Parts) {
	r := &urlserver.Reserver{Lease: cfg.Lease, Holder: fmt.Sprintf("bench:%d", os.Getpid()), Log: parts.Log}
	switch d.Reservation {
	case "":
		return
	case "memory":
		r.Store = memory.New(memory.Config{Penalty: cfg.Penalty})
	default:
		r.Store = redis.New(redis.Config{Addrs: []string{d.Reservation}, Penalty: cfg.Penalty})
	}
	parts.Reserver = r
}

func (d *daemon) do(ctx context.Context, r request) (any, error) {
	switch r.Do {
	case "collect":
		return collect(), nil
	case "status":
		return d.daemon.Status(ctx)
	case "fill":
		return nil, d.fill(ctx, 0, d.URLs)
	case "crowd":
		return nil, d.crowd(ctx)
	case "crawls":
		return nil, d.fillCrawls(ctx)
	case "info":
		return d.control(ctx, "info", r.Arg, infoCalls)
	case "stop":
		return d.control(ctx, "stop", r.Arg, 1)
	case "requests":
		return d.takeRequests(ctx, r.Arg)
	case "http":
		return d.serveHTTP()
	case "ramp":
		return nil, d.ramp(ctx)
	case "heap":
		return nil, writeHeap(r.Arg)
	}
	return nil, unknown(r)
}

// fill puts URLs from one number to another into its index.
func (d *daemon) fill(ctx context.Context, from, to int) error {
	return fill(ctx, d.store, d.Hosts, from, to)
}

func fill(ctx context.Context, store docindex.Store, hosts, from, to int) error {
	var p docindex.Puts
	var url []byte
	for i := from; i < to; i++ {
		url = appendAddrURL(url[:0], i, hosts)
		if err := p.Add(docindex.Put{URL: url}); err != nil {
			return err
		}
		if p.Len() == 10_000 || i == to-1 {
			if _, err := store.Put(ctx, &p); err != nil {
				return err
			}
			p.Reset()
		}
	}
	return nil
}

// ramp puts the first URL of each host evenly over one gap, and then all others. So some hosts are
// due at any time. It waits first, because nothing is due until a gap has passed since the daemon's
// start.
func (d *daemon) ramp(ctx context.Context) error {
	const step = 5 * time.Millisecond
	gap := time.Duration(float64(time.Second) / d.PerSec)
	if err := pause(ctx, gap+time.Second); err != nil {
		return err
	}
	ticks := time.NewTicker(step)
	defer ticks.Stop()
	start := time.Now()
	for put := 0; put < d.Hosts; {
		<-ticks.C
		due := min(d.Hosts, int(float64(d.Hosts)*float64(time.Since(start))/float64(gap)))
		if err := d.fill(ctx, put, due); err != nil {
			return err
		}
		put = due
	}
	return d.fill(ctx, d.Hosts, d.URLs)
}

// crowd puts all URLs at once, after the first gap.
func (d *daemon) crowd(ctx context.Context) error {
	if err := pause(ctx, time.Duration(float64(time.Second)/d.PerSec)); err != nil {
		return err
	}
	return d.fill(ctx, 0, d.URLs)
}

// writeHeap writes a heap profile as of the last garbage collection.
func writeHeap(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.WriteHeapProfile(f), f.Close())
}

func (d *daemon) close() error {
	if d.unwatch != nil {
		if err := d.unwatch(); err != nil {
			return fmt.Errorf("HTTP: %w", err)
		}
	}
	if d.cancel != nil {
		d.cancel()
		if err := <-d.ended; err != nil {
			return fmt.Errorf("daemon: %w", err)
		}
	}
	if d.closeStore != nil {
		if err := d.closeStore(); err != nil {
			return err
		}
	}
	if d.resolver == nil {
		return nil
	}
	return d.resolver.Close()
}
