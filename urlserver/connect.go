package urlserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"urlserver/internal/netguard"
)

const (
	maxSpiders  = 4096 // connections at once
	dialTimeout = 5 * time.Second
	minBackoff  = 100 * time.Millisecond
	maxBackoff  = 5 * time.Second
	acceptAfter = time.Second // pause after an accept that failed, as with too many open files
)

// Listen opens the listener that spiders dial at addr. conf is its TLS; nil: none.
func Listen(addr string, conf *tls.Config) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("spider.listen: %w", err)
	}
	l = netguard.ThrottleUnauthenticated(l)
	if conf == nil {
		return l, nil
	}
	return tls.NewListener(l, conf), nil
}

// accept serves the spiders that connect until the listener closes. It returns when their
// connections have ended.
func (d *Daemon) accept(ctx context.Context, l net.Listener) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var open atomic.Int64
	var refused netguard.Tarpit
	var conns sync.WaitGroup
	defer conns.Wait()
	defer refused.Close()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) || err != nil && ctx.Err() != nil {
			return
		}
		if err != nil {
			d.log.Warn().Err(err).Msg("spider.listen: accept failed; going on")
			sleep(ctx, acceptAfter)
			continue
		}
		if open.Load()+int64(refused.Len()) >= maxSpiders && !refused.MakeRoom() {
			d.log.Warn().Stringer("spider", conn.RemoteAddr()).Int("limit",
				maxSpiders).Msg("too many spiders; connection refused")
			conn.Close()
			continue
		}
		open.Add(1)
		conns.Go(func() {
			defer open.Add(-1)
			if d.serveConn(ctx, conn, string(d.cfg.Load().Spider.Token), "") {
				refused.Add(conn)
			}
		})
	}
}

// serveConn serves a connection and closes it, at the latest when ctx ends. dialled is as for
// serve. A refused connection stays open.
func (d *Daemon) serveConn(ctx context.Context, conn net.Conn, token, dialled string) (refused bool) {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if d.serve(conn, token, dialled) {
		return true
	}
	conn.Close()
	return false
}

// dial keeps a connection to a listening spider open until ctx ends; it reconnects with backoff.
func (d *Daemon) dial(ctx context.Context, addr string) {
	dialer := net.Dialer{Timeout: dialTimeout}
	backoff := minBackoff
	for ctx.Err() == nil {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			if backoff == minBackoff {
				d.log.Warn().Str("spider", addr).Err(err).Msg("spider cannot be reached; trying again")
			}
			sleep(ctx, backoff)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		began := time.Now()
		d.serveConn(ctx, conn, "", addr)
		if time.Since(began) > maxBackoff {
			backoff = minBackoff
		}
		sleep(ctx, backoff)
		backoff = min(2*backoff, maxBackoff)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// dialers keeps one goroutine a spider to dial.
type dialers struct {
	dial func(ctx context.Context, addr string)

	mu    sync.Mutex // guards all below
	ctx   context.Context
	ends  map[string]context.CancelFunc
	group sync.WaitGroup
}

// start dials these spiders until ctx ends, or others by change.
func (d *dialers) start(ctx context.Context, addrs []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ctx = ctx
	d.setLocked(ctx, addrs)
}

func (d *dialers) setLocked(ctx context.Context, addrs []string) {
	want := map[string]context.CancelFunc{}
	for _, addr := range addrs {
		if want[addr] = d.ends[addr]; want[addr] == nil {
			one, end := context.WithCancel(ctx)
			want[addr] = end
			d.group.Go(func() { d.dial(one, addr) })
		}
	}
	for addr, end := range d.ends {
		if want[addr] == nil {
			end()
		}
	}
	d.ends = want
}

// change dials these spiders from now on, and no others; after stop none.
func (d *dialers) change(addrs []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx != nil {
		d.setLocked(d.ctx, addrs)
	}
}

// stop waits until all goroutines have ended. The context of start must have ended.
func (d *dialers) stop() {
	d.mu.Lock()
	d.ctx = nil
	d.mu.Unlock()
	d.group.Wait()
}
