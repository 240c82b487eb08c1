package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/rs/zerolog"

	"urlserver/urlserver/httpapi"
)

const (
	viewers       = 5
	viewersTarget = 0.01 // CPU seconds per second
	streamTarget  = 20e3 // bytes per second to one viewer
)

// takeViewers measures what open dashboards cost the daemon. No document is due, so all its work is
// for the dashboards.
func takeViewers(ctx context.Context, b *bench) (rows []row, err error) {
	d, stop, err := startIdle(ctx, b, idleHosts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var at string
	if err := d.ask("http", "", &at); err != nil {
		return nil, err
	}
	alone, err := idleCPU(ctx, d)
	if err != nil {
		return nil, err
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var streams [viewers]stream
	for i := range streams {
		if err := streams[i].open(ctx, "http://"+at+"/api/live"); err != nil {
			return nil, err
		}
		defer streams[i].Close()
	}
	watched, err := idleCPU(ctx, d)
	if err != nil {
		return nil, err
	}
	leave()
	perSecond := float64(<-streams[0].bytes) / (idleSettle + idleSpan).Seconds()
	cost := watched[0] - alone[0]
	return []row{{
		what:     fmt.Sprintf("CPU of %d dashboards open on %s slots", viewers, count(idleHosts)),
		target:   fmt.Sprintf("≤ %.2f s/s", viewersTarget),
		measured: fmt.Sprintf("%.4f s/s", cost), met: judge(cost <= viewersTarget &&
			perSecond <= streamTarget),
		beside: fmt.Sprintf("none open: %.5f s/s", alone[0]),
		how: fmt.Sprintf("user and system time of the daemon's process over %v while nothing is due, "+
			"with and without clients that read /api/live; %.1f KB/s for each",
			idleSpan, perSecond/1e3),
	}}, nil
}

// stream is the live stream that a dashboard reads.
type stream struct {
	io.Closer
	bytes chan int64 // receives the number of bytes when the stream has ended
}

// open starts to read, until ctx ends.
func (s *stream) open(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	s.Closer, s.bytes = resp.Body, make(chan int64, 1)
	if resp.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("%s answers %s", url, resp.Status), s.Close())
	}
	go func() {
		n, _ := io.Copy(io.Discard, resp.Body) // it ends with ctx
		s.bytes <- n
	}()
	return nil
}

// serveHTTP serves the daemon's dashboard and returns its URL.
func (d *daemon) serveHTTP() (at string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	s := httpapi.New(httpapi.Config{Daemon: d.daemon, Store: d.store, Log: zerolog.Nop()})
	go func() { served <- s.Serve(ctx, l) }()
	d.unwatch = func() error { end(); return <-served }
	return l.Addr().String(), nil
}
