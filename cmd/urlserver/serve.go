package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/export"
	"urlserver/docindex/httpclient"
	"urlserver/docindex/memory"
	"urlserver/docindex/recrawl"
	"urlserver/docindex/redis"
	"urlserver/docindex/scoped"
	"urlserver/frontier"
	"urlserver/internal/clihelp"
	"urlserver/internal/netguard"
	"urlserver/internal/resolver"
	"urlserver/internal/systemd"
	"urlserver/internal/trace/otlp"
	"urlserver/urlserver"
	"urlserver/urlserver/crawllog"
	"urlserver/urlserver/httpapi"
)

func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve FILE",
		Short: "Run the daemon with a settings file",
		Long: "Runs the daemon until SIGTERM or SIGINT. Then it sends nothing more, waits up to 10 " +
			"seconds for documents at\n" +
			"spiders, reports the outcomes to the doc index, and ends. A second signal, more than one second\n" +
			"later, ends it at once.\n" +
			"On SIGHUP it reads FILE again and applies the settings that can change while it runs; the log " +
			"names the rest.\n" +
			"Variables of the environment override FILE: URLSERVER_HTTP_LISTEN is http.listen.",
		Example: "  urlserver serve my.toml",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			hups, stop := hangups()
			defer stop()
			begin := launch{file: args[0], overrides: configs.Environ(os.Environ())}
			return serve(cmd.Context(), begin, hups, cmd.ErrOrStderr())
		},
	}
}

// hangups returns a channel of the SIGHUPs to come, until stop is called.
func hangups() (hups chan os.Signal, stop func()) {
	hups = make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	return hups, func() { signal.Stop(hups) }
}

// launch is what a daemon is started with.
type launch struct {
	file      string             // its settings; "": all are defaults
	overrides []configs.Override // what replaces them
	host      string             // name in ListNodes; "": the address of the listener
	metrics   string             // port of a listener for /metrics alone; "": none
	ignored   []string           // arguments that stand for no setting
}

// load reads the settings.
func (l launch) load() (configs.Config, error) { return configs.LoadWith(l.file, l.overrides) }

// warn logs what was given to the launch and has no effect.
func (l launch) warn(log zerolog.Logger) {
	for _, w := range unknownVariables() {
		log.Warn().Msg(w)
	}
	if len(l.ignored) > 0 {
		log.Warn().Strs("arguments", l.ignored).Msg("these arguments have no counterpart here and are ignored")
	}
}

// serve runs the daemon until ctx ends; each of hups has it read its settings again.
func serve(ctx context.Context, begin launch, hups <-chan os.Signal, errs io.Writer) (err error) {
	cfg, err := begin.load()
	if err != nil {
		return settingsError(err)
	}
	signal.Ignore(syscall.SIGPIPE) // of a log that nobody reads any more
	urlserver.TuneGC(cfg.DocIndex.Kind == configs.KindDisk)
	recent := httpapi.NewWarnings(cfg.Secrets()...)
	out := clihelp.NewLogWriter(errs, recent)
	log, level := newLogger(out, cfg.Log, cfg.Secrets(), recent)
	out.Start()
	defer func() { err = out.Close(err) }()
	begin.warn(log)
	s := server{
		launch: begin, log: log, out: out, level: level, hups: hups, recent: recent, asks: make(chan reloadAsk),
		manager: systemd.FromEnv(), start: time.Now(),
	}
	defer func() { err = errors.Join(err, s.close()) }()
	switch err := s.open(ctx, cfg); {
	case errors.Is(err, errNotOpen):
		log.Warn().Msg(err.Error())
		return nil
	case err != nil:
		return err
	}
	return s.run(ctx)
}

// server is a daemon with its listeners.
type server struct {
	launch
	log   zerolog.Logger
	out   *clihelp.LogWriter // of log
	level *levelSwitch
	hups  <-chan os.Signal
	asks  chan reloadAsk
	start time.Time

	manager     systemd.Socket
	spiderCerts *netguard.ServerTLS // nil: spiders dial in without TLS

	recent *httpapi.Warnings

	resolver         *resolver.Resolver
	closeIndex       func() error        // nil: it is in memory, or elsewhere
	onLeaseLost      func(lost func())   // of an index that several daemons share; nil: it is not
	reserver         *urlserver.Reserver // nil: reservation.kind is "none"
	janitor          time.Duration       // period in which the reservation is swept; 0: others do
	closeReservation func() error
	daemon           *urlserver.Daemon
	admin            *httpapi.Server  // nil: http.listen is not set
	frontier         *frontier.Server // nil: frontier.listen is not set
	spiders          net.Listener     // nil: spider.listen is not set
	http             net.Listener     // nil: http.listen is not set
	grpc             net.Listener     // nil: frontier.listen is not set
	scrapes          net.Listener     // for /metrics alone; nil: none
	// the embedded index, without what decides when to fetch again; nil: it is elsewhere
	base   docindex.Store
	crawls crawlControl
	scopes *scoped.Store  // nil: the index is elsewhere
	traces *otlp.Exporter // nil: trace.endpoint is not set
	lines  *crawllog.Log  // nil: log.crawl is not set
}

// open makes all that is to run. What it opened before an error, close closes.
func (s *server) open(ctx context.Context, cfg configs.Config) (err error) {
	if s.resolver, err = resolver.New(resolverConfig(cfg.Resolver)); err != nil {
		return fmt.Errorf("resolver: %w", err)
	}
	if cfg.Spider.Listen != "" {
		if err := s.openSpiders(cfg.Spider); err != nil {
			return err
		}
	}
	if cfg.HTTP.Listen != "" {
		if s.http, err = net.Listen("tcp", cfg.HTTP.Listen); err != nil {
			return fmt.Errorf("http.listen: %w", err)
		}
	}
	index, store, err := s.openIndex(ctx, cfg)
	if err != nil {
		return err
	}
	for _, c := range cfg.Crawls {
		if err := s.scopes.SetCrawl(ctx, c.ID, scoped.Change{Scope: &c.Scope}); errors.Is(err, scoped.ErrStopped) {
			s.log.Warn().Str("crawl", c.ID).Err(err).Msg("[[crawls]] of the settings: the scope is not set")
		} else if err != nil {
			return fmt.Errorf("crawls: %.100q: %w", c.ID, err)
		}
	}
	if err := s.loadSeeds(ctx, store, cfg.DocIndex.Seeds); err != nil {
		return err
	}
	if err := s.openReserver(cfg.Reservation,
		time.Duration(float64(time.Second)/cfg.ReqHostPerSec),
		cfg.Frontier.Listen != "" && cfg.Frontier.Addresses); err != nil {
		return err
	}
	if cfg.Trace.Endpoint != "" {
		s.traces = otlp.New(otlp.Config{Endpoint: cfg.Trace.Endpoint, Version: clihelp.Build().Main.Version,
			Log: s.log})
	}
	if err := crawlLog(cfg.Log.Crawl); err != nil {
		return err
	}
	if cfg.Log.Crawl != "" {
		s.lines = crawllog.New(cfg.Log.Crawl, s.log)
	}
	s.openDaemon(cfg, index, store)
	if err := s.crawls.open(cfg.Monitor, s.base, s.daemon, s.log); err != nil {
		return err
	}
	if cfg.Frontier.Listen != "" {
		if err := s.openFrontier(cfg.Frontier, store); err != nil {
			return err
		}
	}
	if s.metrics != "" {
		if s.scrapes, err = net.Listen("tcp", ":"+s.metrics); err != nil {
			return fmt.Errorf("listener for /metrics: %w", err)
		}
	}
	s.admin = httpapi.New(httpapi.Config{
		Daemon: s.daemon, Store: store, Dump: dump, Token: string(cfg.HTTP.Token), Listen: cfg.HTTP.Listen,
		Hosts: cfg.HTTP.Hosts, Log: s.log,
		Scopes: s.scopeKeeper(), StopCrawl: s.crawls.stopID(), Actions: s.crawls.actions(),
		Crawls: s.crawls.lister(), CrawlChanges: s.crawls.changes(),
		Kafka: s.crawls.figures(), More: s.collectors(), File: s.file, Recent: s.recent, Reload: s.askReload,
	})
	return nil
}

func (s *server) openDaemon(cfg configs.Config, index docindex.Source, store docindex.Store) {
	s.daemon = urlserver.New(cfg, urlserver.Parts{
		Index: index, Store: store, Resolver: s.resolver, Reserver: s.reserver, Traces: s.traces,
		CrawlLog: s.lines, Log: s.log,
	})
	if s.onLeaseLost != nil {
		s.onLeaseLost(s.daemon.RecallAll)
	}
}

// dump serves the dump of a store. The HTTP API does not know the format, which needs gRPC compiled.
func dump(s httpapi.DumpStore) http.Handler { return export.Handler(s) }

// scopeKeeper returns what keeps the scopes of crawls; nil: the index is elsewhere.
func (s *server) scopeKeeper() httpapi.Scopes {
	if s.scopes == nil {
		return nil
	}
	return s.scopes
}

func (s *server) openSpiders(cfg configs.Spider) (err error) {
	var conf *tls.Config
	if cfg.TLSCert != "" {
		s.spiderCerts, err = netguard.LoadServerTLS(netguard.ServerFiles{Setting: "spider.tls_",
			Cert: cfg.TLSCert, Private: cfg.TLSKey, CA: cfg.TLSCA})
		if err != nil {
			return err
		}
		conf = s.spiderCerts.Config()
	}
	s.spiders, err = urlserver.Listen(cfg.Listen, conf)
	return err
}

func (s *server) openFrontier(cfg configs.Frontier, store frontier.Store) (err error) {
	s.frontier, err = frontier.New(frontier.Config{Settings: cfg, Store: store, Log: s.log,
		Host: s.host, SetLevel: s.level.set})
	if err != nil {
		return err
	}
	if s.grpc, err = net.Listen("tcp", cfg.Listen); err != nil {
		return fmt.Errorf("frontier.listen: %w", err)
	}
	return nil
}

// collectors are the metrics beside the daemon's own.
func (s *server) collectors() []prometheus.Collector {
	more := s.crawls.collectors()
	if s.frontier != nil {
		more = append(more, s.frontier)
	}
	if s.traces != nil {
		more = append(more, s.traces)
	}
	if s.lines != nil {
		more = append(more, s.lines)
	}
	return more
}

func resolverConfig(c configs.Resolver) resolver.Config {
	return resolver.Config{
		Servers: c.Servers, Timeout: c.Timeout, Attempts: c.Attempts, Concurrency: c.Concurrency,
		MinTTL: c.MinTTL, MaxTTL: c.MaxTTL, NegativeTTL: c.NegativeTTL,
		Family: c.Family, AllowNetworks: c.AllowNetworks,
	}
}

// openIndex returns the index; store is nil where it is elsewhere.
func (s *server) openIndex(ctx context.Context, all configs.Config) (index docindex.Source, store docindex.Store,
	err error) {
	cfg := all.DocIndex
	switch cfg.Kind {
	case configs.KindHTTP:
		client, err := httpclient.New(httpclient.Config{URL: cfg.URL, Token: string(cfg.Token)})
		return client, nil, err
	case configs.KindDisk:
		if store, err = s.openDisk(ctx, cfg); err != nil {
			return nil, nil, err
		}
	case configs.KindRedis:
		if store, err = s.openShared(cfg, all.Reservation); err != nil {
			return nil, nil, err
		}
	default:
		store = memory.NewLimited(memoryLimit(cfg.Memory))
	}
	s.scopes = scoped.New(store, all.Canonical...)
	store = s.scopes
	s.base = store
	store = refetching(store, cfg.RefetchAfter)
	return store, store, nil
}

var errNotOpen = errors.New("stopped, and the index was not open yet")

// openDisk opens the index on disk. It returns errNotOpen when ctx ends before: Open may wait for room on the disk.
// The process has to end then.
func (s *server) openDisk(ctx context.Context, cfg configs.DocIndex) (store docindex.Store, err error) {
	syncs := map[string]disk.Sync{configs.SyncBatch: disk.Batch, configs.SyncInterval: disk.Interval,
		configs.SyncNone: disk.None}
	type result struct {
		store *disk.Store
		err   error
	}
	opened := make(chan result, 1)
	go func() {
		kept, err := disk.Open(disk.Config{Path: cfg.Path, Sync: syncs[cfg.Sync], Memory: int64(cfg.Memory),
			Log: s.log, Fatal: s.die})
		opened <- result{kept, err}
	}()
	select {
	case got := <-opened:
		if got.err != nil {
			return nil, got.err
		}
		s.closeIndex = got.store.Close
		return got.store, nil
	case <-ctx.Done():
		return nil, errNotOpen
	}
}

// openShared returns the index in Redis. The documents of a daemon that has crashed are due again
// after the lease of the reservation.
func (s *server) openShared(cfg configs.DocIndex, lost configs.Reservation) (docindex.Store, error) {
	secure, err := netguard.ClientFiles{Cert: cfg.TLSCert, Key: cfg.TLSKey, CA: cfg.TLSCA}.Client()
	if err != nil {
		return nil, fmt.Errorf("docindex: %w", err)
	}
	store := redis.New(redis.Config{
		Addrs: cfg.Addrs, Prefix: cfg.Prefix, Password: string(cfg.Token), TLS: secure, Lease: lost.Lease,
		Janitor: lost.Janitor, Log: s.log,
	})
	s.closeIndex, s.onLeaseLost = store.Close, store.OnLeaseLost
	return store, nil
}

// refetching returns store, or a store over it that schedules documents again if the settings ask
// for that.
func refetching(store docindex.Store, after configs.RefetchAfter) docindex.Store {
	if after == (configs.RefetchAfter{}) {
		return store
	}
	return recrawl.New(store, recrawl.Rule(after))
}

// die ends the process at once: the index cannot keep what it would acknowledge.
func (s *server) die(err error) {
	s.log.Error().Err(err).Msg("the daemon ends at once")
	s.out.Close(nil)
	os.Exit(1)
}

// run works until ctx ends. HTTP stays until the daemon has stopped, so that it can be watched, and
// takes the last links of spiders.
func (s *server) run(ctx context.Context) error {
	rest, end := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	var httpErr, grpcErr, kafkaErr error
	ctx, fail := context.WithCancel(ctx)
	defer fail()
	if s.http != nil {
		helpers.Go(func() {
			httpErr = s.admin.Serve(rest, s.http)
			fail() // an operator could not reach the daemon any more
		})
		s.log.Info().Stringer("address", s.http.Addr()).Msg("listening for HTTP")
	}
	if s.grpc != nil {
		helpers.Go(func() {
			grpcErr = s.frontier.Serve(ctx, s.grpc)
			fail()
		})
		s.log.Info().Stringer("address", s.grpc.Addr()).Msg("listening for clients of the URL Frontier")
		// test containers wait for this line of the service in Java
		s.log.Info().Stringer("address", s.grpc.Addr()).Msg("Started URLFrontierServer")
	}
	if s.scrapes != nil {
		helpers.Go(func() { s.admin.ServeMetrics(rest, s.scrapes, s.daemon.Settings().Frontier.AllowFrom) })
	}
	helpers.Go(func() {
		kafkaErr = s.crawls.run(ctx)
		if kafkaErr != nil {
			fail()
		}
	})
	if s.spiders != nil {
		s.log.Info().Stringer("address", s.spiders.Addr()).Msg("listening for spiders")
	}
	helpers.Go(func() { s.reloads(rest) })
	s.watchCerts(rest, &helpers)
	helpers.Go(func() { s.sweepReservation(rest) })
	if s.scopes != nil {
		helpers.Go(func() { s.scopes.Run(rest, s.log) })
	}
	if s.scopes != nil && s.onLeaseLost == nil {
		helpers.Go(func() { s.watchClock(rest) })
	}
	if s.traces != nil {
		helpers.Go(func() { s.traces.Run(rest) })
	}
	if s.lines != nil {
		helpers.Go(func() { s.lines.Run(rest) })
	}
	if period := systemd.WatchdogInterval(); period > 0 {
		helpers.Go(func() { s.watchdog(rest, period, s.daemon.Answers) })
	}
	s.tell(systemd.Ready)
	helpers.Go(func() {
		<-ctx.Done()
		s.tell(systemd.Stopping)
		s.log.Info().Msg("stopping: nothing more is sent; waiting for what is at spiders")
	})
	err := s.daemon.Run(ctx, s.spiders)
	s.spiders = nil // closed
	fail()
	end()
	helpers.Wait()
	s.log.Info().Msg("stopped")
	return errors.Join(err, httpErr, grpcErr, kafkaErr)
}

// close closes what is open.
func (s *server) close() error {
	var errs []error
	if s.spiders != nil {
		errs = append(errs, s.spiders.Close())
	}
	for _, l := range []net.Listener{s.http, s.grpc, s.scrapes} {
		if l == nil {
			continue
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.closeIndex != nil {
		errs = append(errs, s.closeIndex())
	}
	if s.closeReservation != nil {
		errs = append(errs, s.closeReservation())
	}
	if s.resolver != nil {
		errs = append(errs, s.resolver.Close())
	}
	return errors.Join(errs...)
}
