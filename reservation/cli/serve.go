package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urlserver/internal/clihelp"
	"urlserver/internal/netguard"
	"urlserver/internal/systemd"
	"urlserver/reservation"
	"urlserver/reservation/grpcserver"
)

// tokenEnv names the variable of the token, to keep the token out of the command line.
const tokenEnv = "HOSTRESERVATION_TOKEN"

// settings has the values of the flags of serve.
type settings struct {
	stores          Stores
	opening         Opening
	listen, metrics string
	janitor         time.Duration
	token           string
	files           netguard.ServerFiles
	looks           time.Duration // how often the certificate files are checked
	insecure        bool
}

func serveCommand(stores Stores) *cobra.Command {
	set := settings{stores: stores, files: netguard.ServerFiles{Setting: "--tls-"},
		looks: netguard.ReloadPeriod}
	cmd := &cobra.Command{
		Use:   "serve --listen ADDR --store " + strings.Join(stores.Names, "|"),
		Short: "Serve reservations over gRPC until interrupted",
		Long: "Serves the host reservation service (api/reservation/reservation.proto). Several may " +
			"serve one " + stores.Far + ".",
		Args: clihelp.Takes(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := clihelp.NewLogWriter(cmd.ErrOrStderr())
			log := zerolog.New(out).With().Timestamp().Logger()
			out.Start()
			return out.Close(serve(cmd.Context(), set, log))
		},
	}
	if stores.Local != "" {
		cmd.Long += "\nThe store " + stores.Local + " is gone when the command ends; only one may serve it."
	}
	set.flags(cmd.Flags())
	return cmd
}

func (set *settings) flags(f *pflag.FlagSet) {
	far, flag := set.stores.Far, set.stores.Flag
	f.StringVar(&set.listen, "listen", "127.0.0.1:7072", "`address` to serve on, host:port")
	f.StringVar(&set.metrics, "metrics", "", "`address` for /metrics and /healthz over HTTP; none: nowhere")
	f.StringVar(&set.opening.Store, "store", set.stores.Names[0], set.stores.listed())
	f.StringSliceVar(&set.opening.Addrs, "addrs", []string{set.stores.Addr}, "`addresses` of "+set.stores.At)
	f.StringVar(&set.opening.Prefix, "prefix", "", "before each key in "+far)
	f.DurationVar(&set.opening.Penalty, "penalty", 10*time.Second,
		"a lost lease keeps its group from being asked so long")
	f.DurationVar(&set.janitor, "janitor", 30*time.Second, "period of the janitor")
	f.StringVar(&set.token, "token", os.Getenv(tokenEnv), "asked of callers; or set "+tokenEnv)
	f.StringVar(&set.files.Cert, "tls-cert", "", "certificate `file` for TLS")
	f.StringVar(&set.files.Private, "tls-key", "", "its key `file`")
	f.StringVar(&set.files.CA, "tls-ca", "", "ask callers for a certificate of a CA in this `file`")
	f.StringVar(&set.opening.TLS.Cert, flag+"-tls-cert", "", "client certificate `file` for "+far)
	f.StringVar(&set.opening.TLS.Key, flag+"-tls-key", "", "its key `file`")
	f.StringVar(&set.opening.TLS.CA, flag+"-tls-ca", "",
		"reach "+far+" over TLS, trusting the CAs in this `file`")
	f.BoolVar(&set.insecure, "allow-insecure", false, "serve others than this machine without token and TLS")
	set.stores.Flags(f)
	f.Lookup("token").DefValue = "" // help shows none
}

// check returns an error if the flags do not fit together.
func (s settings) check() error {
	switch o := s.opening; {
	case !s.stores.has(o.Store):
		return clihelp.Usagef("--store %q: %s", o.Store, s.stores.listed())
	case o.Store != s.stores.Local && len(o.Addrs) == 0:
		return clihelp.Usagef("--store %s needs --addrs", o.Store)
	case o.Penalty < 0 || o.Penalty > reservation.MaxLease:
		return clihelp.Usagef("--penalty %v: from 0s to %v", o.Penalty, reservation.MaxLease)
	case s.janitor < 10*time.Millisecond || s.janitor > time.Hour:
		return clihelp.Usagef("--janitor %v: from 10ms to 1h", s.janitor)
	}
	for _, at := range []struct{ flag, addr string }{{"--listen", s.listen}, {"--metrics", s.metrics}} {
		if _, _, err := net.SplitHostPort(at.addr); err != nil && (at.addr != "" || at.flag == "--listen") {
			return clihelp.Usagef("%s %q: HOST:PORT is wanted, as in 127.0.0.1:7072", at.flag, at.addr)
		}
	}
	guarded := s.insecure || s.token != ""
	if !guarded && s.files.Cert == "" && !isLoopback(s.listen) {
		return clihelp.Usagef("--listen %s is open to others without token or TLS: set --token or --tls-cert, "+
			"listen on 127.0.0.1, or say --allow-insecure", s.listen)
	}
	if !guarded && s.metrics != "" && !isLoopback(s.metrics) {
		return clihelp.Usagef("--metrics %s is open to others: set --token, listen on 127.0.0.1, or say "+
			"--allow-insecure", s.metrics)
	}
	return nil
}

func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// serve runs the service until ctx ends or it fails.
func serve(ctx context.Context, set settings, log zerolog.Logger) error {
	if err := set.check(); err != nil {
		return err
	}
	certificates, err := set.certificates()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // of a log that nobody reads any more
	set.opening.Log = log
	store, end, err := set.stores.Open(set.opening)
	if err != nil {
		return err
	}
	defer end()
	cfg := grpcserver.Config{Store: store, Janitor: set.janitor, Token: set.token, Log: log}
	if certificates != nil {
		cfg.TLS = certificates.Config()
	}
	server := grpcserver.New(cfg)
	l, err := net.Listen("tcp", set.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if certificates != nil {
		watching.Go(func() { certificates.Watch(ctx, set.looks, func(err error) { tellRead(log, err) }) })
	}
	metrics := make(chan error, 1)
	if set.metrics == "" {
		metrics <- nil
	} else {
		m, err := net.Listen("tcp", set.metrics)
		if err != nil {
			l.Close()
			return fmt.Errorf("--metrics: %w", err)
		}
		log.Info().Stringer("address", m.Addr()).Msg("metrics")
		go func() {
			metrics <- serveMetrics(ctx, m, server, set.token)
			cancel()
		}()
	}
	log.Info().Stringer("address", l.Addr()).Str("store", set.opening.Store).Msg("serving")
	if err := systemd.FromEnv().Notify(systemd.Ready); err != nil {
		log.Warn().Err(err).Msg("the service manager cannot be told")
	}
	err = server.Serve(ctx, l)
	cancel()
	return errors.Join(err, <-metrics)
}

// certificates returns the listener's certificates; nil: no TLS.
func (s settings) certificates() (*netguard.ServerTLS, error) {
	switch f := s.files; {
	case f.Cert != "":
		return netguard.LoadServerTLS(f)
	case f.Private != "" || f.CA != "":
		return nil, errors.New("--tls-key and --tls-ca need --tls-cert")
	}
	return nil, nil
}

// tellRead logs that changed certificate files were read, or could not be.
func tellRead(log zerolog.Logger, err error) {
	if err != nil {
		log.Error().Err(err).Msg("certificate files have changed and cannot be used; the former go on")
		return
	}
	log.Info().Msg("certificate files have changed, and were read again")
}
