// Package httpapi is the daemon's HTTP listener: the dashboard, the JSON API for
// operators, metrics, health, and the doc index that is embedded in the daemon.
package httpapi

import (
	"bytes"
	"context"
	"errors"
	stdlog "log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/httpserver"
	"urlserver/internal/netguard"
	"urlserver/urlserver"
	"urlserver/urlserver/httpapi/livefeed"
	"urlserver/urlserver/httpapi/login"
)

const (
	readHeaderTimeout = 10 * time.Second
	keepAlive         = 2 * time.Minute  // between two requests of a connection
	ioTimeout         = 30 * time.Second // in which a peer has to send or read something
	stopWait          = 5 * time.Second  // for open requests when Serve ends
	warnAgain         = time.Minute      // log a listener that fails no more often
)

// Store is what the server uses of an embedded index.
type Store interface {
	httpserver.Store
	DumpStore
	docindex.Inspector

	// Count is that of [docindex.Frontier].
	Count(ctx context.Context, s *docindex.Scope) (docindex.Counts, error)
}

// DumpStore is what a dump is read from, and what one fills.
type DumpStore interface {
	Settings(ctx context.Context, visit func(*docindex.Setting) bool) error
	Set(ctx context.Context, s docindex.Setting) error
	Crawls(ctx context.Context) ([]string, error)
	List(ctx context.Context, s docindex.Scope, visit func(*docindex.Document) bool) error
	Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error)
	docindex.CrawlKeeper
}

// Config configures a Server. Only Daemon is required.
type Config struct {
	Daemon  *urlserver.Daemon
	Store   Store                        // served at /docindex/; nil: the index is not embedded
	Dump    func(DumpStore) http.Handler // serves /docindex/dump of Store; nil: nothing does
	Token   string                       // required for all paths but /healthz; "": none
	Listen  string                       // "host:port" as in the settings; requests may name its host
	Hosts   []string                     // more hosts that requests may name
	Log     zerolog.Logger
	File    string                                  // path of the settings file, for display
	Recent  *Warnings                               // the warnings that Log has written; nil: none are shown
	More    []prometheus.Collector                  // collectors of other services, shown at /metrics
	Reload  func(context.Context) (Reloaded, error) // reads the settings file again; nil: there is none
	Actions Actions                                 // crawl control; nil: the store keeps no crawls
	Crawls  docindex.CrawlLister                    // lists crawls; nil: the store cannot
	Scopes  Scopes                                  // of crawls; nil: the index keeps none
	// StopCrawl stops all with a crawl ID for good; needed with Scopes
	StopCrawl func(ctx context.Context, crawl string) error
	// CrawlChanges counts submitted, stopped and expired crawls, so a list from before a change is
	// not shown again. nil: nothing counts them.
	CrawlChanges func() uint64
	// counters of crawl control over Kafka, for any goroutine; nil: HTTP only
	Kafka func() crawlcontrol.KafkaCounts
}

// Server answers HTTP requests about a daemon. Use New, then Serve.
type Server struct {
	daemon    *urlserver.Daemon
	store     Store
	dump      func(DumpStore) http.Handler
	hosts     []string // that requests without a token may name
	log       zerolog.Logger
	file      string
	gate      *login.Gate // nil: no token is required
	failed    failures    // failed logins
	runtime   *prometheus.Registry
	actions   Actions
	crawls    *kept[string, crawlList] // by a part of names; nil: the store lists none
	scopes    Scopes                   // nil: the index keeps none
	stopCrawl func(ctx context.Context, crawl string) error
	hostLists *kept[hostQuery, hostList]
	totals    totals
	kafka     func() crawlcontrol.KafkaCounts
	cross     *http.CrossOriginProtection
	feed      *livefeed.Feed

	warnings  *Warnings
	routes    *http.ServeMux
	ioTimeout time.Duration                           // ioTimeout
	bodies    chan struct{}                           // holds an entry for each body in memory
	reload    func(context.Context) (Reloaded, error) // nil: there is no settings file
}

// New returns a server that does not listen yet.
func New(cfg Config) *Server {
	host, _, _ := net.SplitHostPort(cfg.Listen) // "" has no host
	s := &Server{
		daemon:    cfg.Daemon,
		store:     cfg.Store,
		dump:      cfg.Dump,
		hosts:     append([]string{host}, cfg.Hosts...),
		log:       cfg.Log,
		runtime:   runtimeMetrics(cfg.More),
		file:      cfg.File,
		actions:   cfg.Actions,
		scopes:    cfg.Scopes,
		stopCrawl: cfg.StopCrawl,
		cross:     http.NewCrossOriginProtection(),
		kafka:     cfg.Kafka,
		reload:    cfg.Reload,
		ioTimeout: ioTimeout,
		bodies:    make(chan struct{}, maxBodies),
	}
	if s.warnings = cfg.Recent; s.warnings == nil {
		s.warnings = NewWarnings()
	}
	if cfg.Crawls != nil {
		s.crawls = newCrawlLists(cfg.Crawls)
		s.crawls.changes = cfg.CrawlChanges
	}
	if cfg.Token != "" {
		s.gate = login.New(cfg.Token)
	}
	s.totals.store = cfg.Store
	s.hostLists = newKept(s.listHosts)
	s.feed = s.newFeed()
	s.routes = s.routeTable()
	return s
}

// Serve answers requests on l until ctx ends. It closes l, and returns when all connections have
// ended. The error is nil unless l failed before ctx ended.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var conns sync.WaitGroup
	defer conns.Wait()
	watching, unwatch := context.WithCancel(ctx) // ends the subscribers' requests, too
	conns.Go(func() { s.feed.Run(watching) })
	defer unwatch()
	srv := &http.Server{
		Handler:           s.handler(),
		MaxHeaderBytes:    netguard.MaxHeader,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       keepAlive,
		ErrorLog:          stdlog.New(&netLog{log: s.log}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return netguard.WithRequests(requests) },
		ConnContext:       netguard.ConnContext,
		ConnState:         countIn(&conns),
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		shutDown(srv)
		cut()
	})
	err := srv.Serve(netguard.LimitListener(l, s.gate != nil))
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	cut()
	return errors.Join(err, srv.Close())
}

// shutDown waits stopWait for open requests and then closes their connections.
func shutDown(srv *http.Server) {
	grace, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		_ = srv.Close() // the connections are closed whatever it returns
	}
}

// countIn counts open connections: net/http reports each as new once and closed once.
func countIn(conns *sync.WaitGroup) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			conns.Done()
		}
	}
}

// netLog logs the messages of net/http at level debug, since any peer can cause them. That no connection can be
// accepted, as with too many open files, is a warning once a minute. Its only caller is a log.Logger, which calls
// it one at a time.
type netLog struct {
	log    zerolog.Logger
	warned time.Time
}

// Write implements io.Writer.
func (n *netLog) Write(text []byte) (int, error) {
	if now := time.Now(); bytes.Contains(text, []byte("Accept error")) && now.Sub(n.warned) >= warnAgain {
		n.warned = now
		n.log.Warn().Bytes("text", bytes.TrimSpace(text)).Msg("HTTP: no connection can be accepted; going on")
	} else {
		n.log.Debug().Bytes("text", text).Msg("http")
	}
	return len(text), nil
}
