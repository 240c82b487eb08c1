package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

const (
	portTries    = 20 // how many free ports of the first address are tried on the others
	headTimeout  = 10 * time.Second
	maxHead      = 64 << 10
	shutdownWait = 5 * time.Second
)

// webServers is the demo's web servers: one port on several loopback addresses.
type webServers struct {
	port      uint16
	listeners []net.Listener
}

// listenWebServers listens on addresses 1 to n, on a port that is free on all of them.
func listenWebServers(n int) (*webServers, error) {
	if n < 1 || n > maxAddrs {
		return nil, fmt.Errorf("%d addresses: there can be 1 to %d", n, maxAddrs)
	}
	var last error
	for range portTries {
		f := &webServers{}
		if last = f.listen(n); last == nil {
			return f, nil
		}
		f.close()
	}
	return nil, fmt.Errorf(
		"no port is free on all of %v to %v; the demo needs the whole of 127.0.0.0/8, as Linux has it: %w",
		loopback(1), loopback(n), last)
}

func (f *webServers) listen(n int) error {
	for i := range n {
		l, err := net.Listen("tcp", netip.AddrPortFrom(loopback(i+1), f.port).String())
		if err != nil {
			return err
		}
		f.listeners = append(f.listeners, l)
		f.port = uint16(l.Addr().(*net.TCPAddr).Port)
	}
	return nil
}

func (f *webServers) close() {
	for _, l := range f.listeners {
		l.Close()
	}
}

// serve answers requests until ctx ends or a server fails.
func (f *webServers) serve(ctx context.Context, w *web, o *oracle) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all team
	for _, l := range f.listeners {
		all.start(cancel, func() error { return serveHTTP(ctx, l, answers{web: w, oracle: o}) })
	}
	return all.wait()
}

// serveHTTP serves on l until ctx ends, and closes l. All requests have ended when it returns.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: headTimeout, MaxHeaderBytes: maxHead}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { ended <- shutDown(ctx, srv) })
	err := srv.Serve(l)
	if stop() { // ctx has not ended: Serve has failed
		return fmt.Errorf("serve HTTP on %v: %w", l.Addr(), errors.Join(err, srv.Close()))
	}
	return <-ended
}

func shutDown(ctx context.Context, srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWait)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		return srv.Close()
	}
	return nil
}

// answers is the handler of the web servers.
type answers struct {
	web    *web
	oracle *oracle
}

func (s answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, err := net.SplitHostPort(r.Host)
	h := s.web.names[name]
	if err != nil || h == nil || h.site == nil {
		http.Error(w, "no such host", http.StatusMisdirectedRequest)
		return
	}
	end := s.oracle.arrive(localAddr(r), h, r.RequestURI)
	a := h.site.answer(r.RequestURI)
	if a.takes > 0 && !pause(r.Context(), a.takes) {
		end(a)
		return
	}
	a.send(w, end)
}

func localAddr(r *http.Request) netip.Addr {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return addr.AddrPort().Addr().Unmap()
}

// pause waits for d. It returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send writes the answer. It calls end before it writes the last byte. It ignores errors: the
// client has gone.
func (a answer) send(w http.ResponseWriter, end func(answer)) {
	head := w.Header()
	set := func(name, value string) {
		if value != "" {
			head.Set(name, value)
		}
	}
	head["Content-Type"] = nil // nil: net/http guesses no type
	set("Content-Type", a.kind)
	set("Location", a.location)
	set("X-Robots-Tag", a.robotsTag)
	if a.retryAfter > 0 {
		set("Retry-After", strconv.Itoa(a.retryAfter))
	}
	set("Content-Length", strconv.Itoa(len(a.body)))
	if len(a.body) == 0 {
		end(a)
		w.WriteHeader(a.status)
		return
	}
	w.WriteHeader(a.status)
	last := len(a.body) - 1
	_, _ = w.Write(a.body[:last])
	end(a)
	_, _ = w.Write(a.body[last:])
}
