package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
	"urlserver/internal/netguard"
	"urlserver/spider"
)

// settings is what the flags of serve say.
type settings struct {
	listen   string
	dial     []string
	logLevel string
	tls      tlsFiles
	spider   spider.Config
}

// tlsFiles names PEM files for dialling the daemon.
type tlsFiles struct{ ca, cert, key string }

// run executes the command line args; ctx ends what it started.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use:           "spider",
		Short:         "Fetch documents for the URL server",
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(*cobra.Command, []string) error {
			return clihelp.Usagef("no command; try spider serve --help")
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return clihelp.Usagef("%w", err) })
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(serveCommand(stderr))
	return clihelp.Run(ctx, root, args, nil, stdout, stderr)
}

func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return clihelp.Usagef("%w", err)
	}
	return nil
}

func serveCommand(stderr io.Writer) *cobra.Command {
	var set settings
	cmd := &cobra.Command{
		Use:   "serve (--listen ADDR | --dial ADDR)",
		Short: "Fetch until interrupted",
		Long: "Fetches what the URL server's daemons send. With --listen the daemon connects " +
			"(Spider_Host, Spider_Port,\n" +
			"spider.dial); with --dial the spider connects to the daemon's spider.listen. Both may be " +
			"given, --dial often.\n" +
			"Whoever reaches the --listen address can have it fetch anything: keep it on loopback or " +
			"behind a firewall.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), set, stderr) },
	}
	f, c := cmd.Flags(), &set.spider
	f.StringVar(&set.listen, "listen", "", "`address` on which to wait for daemons, host:port")
	f.StringArrayVar(&set.dial, "dial", nil, "`address` of a daemon to connect to, host:port")
	f.StringVar(&c.Token, "token", "", "spider.token of the daemons to dial")
	f.StringVar(&c.ID, "spiderid", "", "fetch documents of this spiderid only, from the daemons to dial")
	f.StringVar(&set.tls.ca, "tls-ca", "", "dial daemons over TLS, trusting the CAs in this `file`")
	f.StringVar(&set.tls.cert, "tls-cert", "", "client certificate for that `file`")
	f.StringVar(&set.tls.key, "tls-key", "", "key of the client certificate `file`")
	f.StringVar(&c.Index, "index", "", "base `URL` of the daemon's HTTP, where links are put; "+
		"-: they are put on the spider's connection; none: links are not put")
	f.StringVar(&c.IndexToken, "token-index", os.Getenv("URLSERVER_TOKEN"),
		"http.token of that daemon; or URLSERVER_TOKEN")
	f.StringVar(&c.WARC, "warc", "", "`directory` for WARC files of all answers")
	f.IntVar(&c.Concurrency, "concurrency", spider.DefaultConcurrency,
		"fetches at one time; the daemons send no more (each: for several, divide it among as many spiders)")
	f.DurationVar(&c.Timeout, "timeout", spider.DefaultTimeout, "longest time for one fetch")
	f.DurationVar(&c.StatusTimeout, "status-timeout", spider.DefaultStatusTimeout,
		"Timeout_Spider_Status of the daemon; WORKING is sent every half of it, and a stall of half "+
			"ends the connection")
	f.StringVar(&c.UserAgent, "user-agent", spider.DefaultUserAgent, "User-Agent sent to hosts")
	f.BoolVar(&c.VerifyTLS, "verify-tls", false, "do not fetch from hosts whose certificate does not hold")
	f.StringVar(&set.logLevel, "log-level", "info", "debug, info, warn or error")
	f.Lookup("token-index").DefValue = "" // help shows no secret
	return cmd
}

// serve runs the spider until ctx ends or it can listen no more.
func serve(ctx context.Context, set settings, stderr io.Writer) (err error) {
	if set.listen == "" && len(set.dial) == 0 {
		return clihelp.Usagef("serve needs --listen or --dial")
	}
	for _, addr := range set.dial {
		if err := dialable(addr); err != nil {
			return err
		}
	}
	level, err := zerolog.ParseLevel(set.logLevel)
	if err != nil || level == zerolog.NoLevel {
		return clihelp.Usagef("--log-level %q: not debug, info, warn or error", set.logLevel)
	}
	signal.Ignore(syscall.SIGPIPE) // of a log that nobody reads any more
	cfg := set.spider
	out := clihelp.NewLogWriter(stderr)
	cfg.Log = logger(out).Level(level)
	out.Start()
	defer func() { err = out.Close(err) }()
	if cfg.TLS, err = set.tls.load(); err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.WARC != "" { // better now than at the first page
		if err := tryFolder(cfg.WARC); err != nil {
			return fmt.Errorf("--warc: %w", err)
		}
	}
	s := spider.New(cfg)
	err = connect(ctx, s, set, cfg.Log)
	err = errors.Join(err, s.Close())
	cfg.Log.Info().Any("stats", s.Stats()).Msg("ended")
	return err
}

// tryFolder makes a folder if there is none, and tries to make a file in it.
func tryFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(path, ".try-")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// dialable says what is wrong with an address that no trying again would make right.
func dialable(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("--dial %q: %w; HOST:PORT is wanted, as in 127.0.0.1:4101", addr, err)
	}
	return nil
}

// connect listens and dials as set says until ctx ends, or until listening fails.
func connect(ctx context.Context, s *spider.Spider, set settings, log zerolog.Logger) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var dials sync.WaitGroup
	defer dials.Wait()
	var l net.Listener
	if set.listen != "" {
		if l, err = net.Listen("tcp", set.listen); err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		log.Info().Stringer("address", l.Addr()).Msg("waiting for daemons")
	}
	for _, addr := range set.dial {
		dials.Go(func() { s.Dial(ctx, addr) }) // its error is always nil
	}
	if l == nil {
		return nil
	}
	defer cancel() // before dials.Wait: where listening fails, dialling ends as well
	return s.Serve(ctx, l)
}

// load returns what the files say, nil if none is named.
func (t tlsFiles) load() (*tls.Config, error) {
	if t == (tlsFiles{}) {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca: no certificate in %s", t.ca)
		}
	}
	if t.cert != "" || t.key != "" {
		present, err := netguard.ClientCertificate(t.cert, t.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		cfg.GetClientCertificate = present
	}
	return cfg, nil
}

// logger writes lines for people to a terminal, JSON elsewhere.
func logger(w io.Writer) zerolog.Logger {
	if clihelp.IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}
