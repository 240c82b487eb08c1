package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex/httpserver"
	"urlserver/internal/resolver"
	"urlserver/spider"
	"urlserver/urlserver"
	"urlserver/urlserver/httpapi"
)

// Why a crawl ended.
var (
	errNothingLeft = errors.New("nothing is left")
	errStuck       = errors.New("stuck: documents are left, and none has ended for too long")
)

// crawl is one crawl of a web, with its servers, daemon and spider.
type crawl struct {
	web            *web
	plan           plan
	oracle         *oracle
	docIndex       *recordingIndex
	webServers     *webServers
	names          *nameServer
	index          net.Listener // serves the doc index over HTTP
	spiderListener net.Listener // the spider connects to it
	page           net.Listener // serves the dashboard; nil: there is none
	spider         *spider.Spider
	others         bool // spiders of other people crawl, and the demo's does not
	perSec         float64
	log            zerolog.Logger
	end            context.CancelCauseFunc
	began          time.Time
	took           time.Duration
}

// newCrawl opens the sockets and starts nothing. It takes over f; run or close closes it. The
// caller passes the context that it returns to run.
func newCrawl(ctx context.Context, f *webServers, w *web, perSec float64,
	log zerolog.Logger) (context.Context,
	*crawl, error) {
	c := &crawl{web: w, webServers: f, perSec: perSec, log: log, plan: expectedCrawl(w),
		oracle: newOracle(w, gapOf(perSec))}
	ctx, c.end = context.WithCancelCause(ctx)
	var err error
	c.docIndex, err = newRecordingIndex(ctx, w, c.nothingLeft)
	if err == nil {
		c.names, err = listenNames(w)
	}
	if err == nil {
		c.index, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err == nil {
		c.spiderListener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		c.close()
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	c.spider = c.newSpider()
	return ctx, c, nil
}

// listen opens the dashboard's socket and, if other spiders are to connect, theirs.
func (c *crawl) listen(at listens) (err error) {
	if c.page, err = net.Listen("tcp", at.page); err != nil {
		return fmt.Errorf("demo: dashboard: %w", err)
	}
	if at.spiders == "" {
		return nil
	}
	c.others = true
	c.spiderListener.Close()
	if c.spiderListener, err = net.Listen("tcp", at.spiders); err != nil {
		return fmt.Errorf("demo: --spiders: %w", err)
	}
	return nil
}

// countTime is how long the daemon goes on when nothing is left, so that other people's spiders can
// ask whether the crawl has finished.
const countTime = 3 * time.Second

// nothingLeft ends the crawl.
func (c *crawl) nothingLeft() {
	if c.others {
		time.AfterFunc(countTime, func() { c.end(errNothingLeft) })
		return
	}
	c.end(errNothingLeft)
}

// close closes the sockets of a crawl that was not run.
func (c *crawl) close() {
	c.end(nil)
	c.webServers.close()
	if c.names != nil {
		c.names.packets.Close()
		c.names.streams.Close()
	}
	for _, l := range []net.Listener{c.index, c.spiderListener, c.page} {
		if l != nil {
			l.Close()
		}
	}
}

func gapOf(perSec float64) time.Duration { return time.Duration(float64(time.Second) / perSec) }

// run crawls until nothing is left, ctx ends or something fails. All goroutines have ended when it
// returns. whole reports whether the crawl is complete.
func (c *crawl) run(ctx context.Context) (whole bool, err error) {
	defer c.end(nil)
	c.began = time.Now()
	others, stop := context.WithCancel(context.WithoutCancel(ctx))
	var servers, crawlers team
	servers.start(c.end, func() error { return c.webServers.serve(others, c.web, c.oracle) })
	servers.start(c.end, func() error { return c.names.serve(others) })
	servers.start(c.end, func() error { return serveHTTP(others, c.index, httpserver.Handler(c.docIndex)) })
	crawlers.start(c.end, func() error { return c.runDaemon(ctx) })
	if !c.others {
		crawlers.start(c.end, func() error {
			return errors.Join(c.spider.Dial(ctx, c.spiderListener.Addr().String()), c.spider.Close())
		})
	}
	<-ctx.Done()
	c.took = time.Since(c.began)
	err = crawlers.wait()
	stop()
	err = errors.Join(err, servers.wait())
	cause := context.Cause(ctx)
	if whole = errors.Is(cause, errNothingLeft); !whole && err == nil {
		err = cause
	}
	return whole, err
}

// team is a group of goroutines whose errors are collected.
type team struct {
	group sync.WaitGroup
	mu    sync.Mutex // guards errs
	errs  []error
}

// start runs work in a goroutine. An error of work is passed to end, too.
func (t *team) start(end context.CancelCauseFunc, work func() error) {
	t.group.Go(func() {
		if err := work(); err != nil {
			end(err)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.errs = append(t.errs, err)
		}
	})
}

func (t *team) wait() error {
	t.group.Wait()
	return errors.Join(t.errs...)
}

// settings returns the daemon's settings: the defaults, except the rate and the addresses.
func (c *crawl) settings() configs.Config {
	cfg := configs.Default()
	cfg.ReqHostPerSec = c.perSec
	cfg.Robots.UserAgent = agent
	cfg.Robots.ErrorTTL = time.Second // so that the dead host does not delay the demo
	cfg.Resolver.Servers = []string{c.names.addr()}
	cfg.Resolver.AllowNetworks = nil
	for _, addr := range c.web.addrs() { // only these: other servers may run on this machine
		cfg.Resolver.AllowNetworks = append(cfg.Resolver.AllowNetworks, netip.PrefixFrom(addr, addr.BitLen()))
	}
	return cfg
}

func (c *crawl) runDaemon(ctx context.Context) error {
	cfg := c.settings()
	res, err := resolver.New(resolver.Config{
		Servers: cfg.Resolver.Servers, Timeout: cfg.Resolver.Timeout, Attempts: cfg.Resolver.Attempts,
		Concurrency: cfg.Resolver.Concurrency, MinTTL: cfg.Resolver.MinTTL, MaxTTL: cfg.Resolver.MaxTTL,
		NegativeTTL: cfg.Resolver.NegativeTTL, Family: cfg.Resolver.Family,
		AllowNetworks: cfg.Resolver.AllowNetworks, HostsFile: "-",
	})
	if err != nil {
		return fmt.Errorf("resolver: %w", err)
	}
	d := urlserver.New(cfg, urlserver.Parts{Index: c.docIndex, Store: c.docIndex, Resolver: res, Log: c.log})
	var pages team
	if c.page != nil {
		s := httpapi.New(httpapi.Config{Daemon: d, Listen: c.page.Addr().String(), Log: c.log})
		pages.start(c.end, func() error { return s.Serve(ctx, c.page) })
	}
	err = d.Run(ctx, lineRecorder{Listener: c.spiderListener, sent: c.oracle.sent})
	return errors.Join(err, pages.wait(), res.Close())
}

func (c *crawl) newSpider() *spider.Spider {
	return spider.New(spider.Config{
		Index: "http://" + c.index.Addr().String(), UserAgent: agent, Log: c.log,
		StatusTimeout: c.settings().TimeoutSpiderStatus,
	})
}

// spare is the number of threads that a crawl gets in addition.
const spare = 6

// spareThreads raises GOMAXPROCS, so that goroutines that wait for sockets get a thread soon. In a
// real crawl web servers, daemon and spider run on machines of their own. Here the spider's parsing
// of pages would delay other requests by tens of milliseconds. A spider that was made before parses
// no more pages at a time than without it. restore undoes the change. It affects the whole process,
// so only the command calls it.
func spareThreads() (restore func()) {
	n := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(n + spare)
	return func() { runtime.GOMAXPROCS(n) }
}
