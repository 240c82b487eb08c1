package spider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"urlserver/protocol"
)

const (
	// maxDaemons bounds the connections of Serve. Further ones wait in the listener.
	maxDaemons = 64

	// dialTimeout bounds a connection attempt to the daemon, including TLS.
	dialTimeout = 10 * time.Second

	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// Serve accepts daemons on l and speaks with each until ctx ends. It closes l, and returns after
// all connections and fetches have ended. The error is nil if ctx has ended, or else why l cannot
// accept.
//
// A listening spider asks its daemons for no token (the protocol has none in that direction).
// Anybody who reaches l can make it fetch anything, so l belongs on loopback or behind a firewall.
func (s *Spider) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	defer s.closeIdle()
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	room := make(chan struct{}, maxDaemons)
	var wait backoff
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept daemons on %v: %w", l.Addr(), err)
		case err != nil: // out of descriptors, or the peer gone again: the listener goes on
			<-room
			s.cfg.Log.Warn().Err(err).Stringer("listener", l.Addr()).Msg("accept failed")
			wait.sleep(ctx)
			continue
		}
		wait.reset()
		conns.Go(func() {
			conn.SetWriteDeadline(time.Now().Add(dialTimeout))
			if _, err := conn.Write(s.room()); err == nil {
				s.talk(ctx, conn)
			} else {
				conn.Close()
			}
			<-room
		})
	}
}

// Dial connects to the daemon at addr, "host:port", and speaks with it. If the connection fails or
// ends, it tries again, for ever, with pauses of up to 5 s. It returns nil after ctx and all
// fetches have ended.
func (s *Spider) Dial(ctx context.Context, addr string) error {
	defer s.closeIdle()
	var wait backoff
	for ctx.Err() == nil {
		conn, err := s.connect(ctx, addr)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn().Err(err).Str("daemon", addr).Msg("no connection to the daemon")
			}
		} else if s.talk(ctx, conn) {
			wait.reset()
		}
		wait.sleep(ctx)
	}
	return nil
}

// connect connects to the daemon and introduces the spider.
func (s *Spider) connect(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if s.cfg.TLS != nil {
		if conn, err = handshake(ctx, conn, clientTLS(s.cfg.TLS, addr)); err != nil {
			return nil, fmt.Errorf("TLS with %s: %w", addr, err)
		}
	}
	deadline, _ := ctx.Deadline()
	conn.SetWriteDeadline(deadline)
	if _, err := conn.Write(s.greeting()); err != nil {
		conn.Close()
		return nil, fmt.Errorf("greet the daemon: %w", err)
	}
	return conn, nil
}

// greeting returns the first lines to a daemon that the spider has connected to.
func (s *Spider) greeting() (lines []byte) {
	if s.cfg.Token != "" {
		lines = protocol.AppendAuth(lines, []byte(s.cfg.Token))
	}
	if s.cfg.ID != "" {
		lines = protocol.AppendSpider(lines, []byte(s.cfg.ID))
	}
	return append(lines, s.room()...)
}

// room returns the line that says how many documents the spider takes.
func (s *Spider) room() []byte { return protocol.AppendRoom(nil, s.cfg.Concurrency) }

// clientTLS returns cfg. If it has no server name, it gets that of addr.
func clientTLS(cfg *tls.Config, addr string) *tls.Config {
	if cfg.ServerName != "" {
		return cfg
	}
	cfg = cfg.Clone()
	if host, _, err := net.SplitHostPort(addr); err == nil {
		cfg.ServerName = host
	}
	return cfg
}

// handshake returns the TLS connection over conn. If the handshake fails it closes conn.
func handshake(ctx context.Context, conn net.Conn, cfg *tls.Config) (net.Conn, error) {
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// closeIdle closes the idle connections, which ends their goroutines.
func (s *Spider) closeIdle() {
	s.fetcher.transport.CloseIdleConnections()
	if s.index != nil {
		s.index.client.CloseIdleConnections()
	}
}

// backoff is a pause that doubles from minBackoff to maxBackoff until it is reset.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// sleep pauses, or returns early when ctx ends.
func (b *backoff) sleep(ctx context.Context) {
	b.next = min(max(2*b.next, minBackoff), maxBackoff)
	sleep(ctx, b.next)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
