package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "urlserver/api/urlfrontier"
	"urlserver/configs"
	"urlserver/docindex/disk"
	"urlserver/docindex/memory"
	"urlserver/frontier"
	"urlserver/frontier/client"
	"urlserver/urlserver"
)

const (
	overURLs    = 1_000_000
	overHosts   = 10_000
	overCallers = 4
	overNew     = 20 // one in so many URLs of the second measurement is new

	overNewTarget   = 0.7
	overKnownTarget = 0.9
)

// takeFrontier puts URLs through the URL Frontier API, and gets and ends them. Beside each it puts as
// many into a service that does nothing.
func takeFrontier(ctx context.Context, b *bench) (rows []row, err error) {
	for _, kind := range []struct {
		name, index string
		gets        float64 // target
	}{{"memory", "in memory", 0.9}, {"disk", "on disk, each batch on disk when acknowledged", 0.6}} {
		some, err := overFrontier(ctx, b, kind.name, "URL Frontier, index "+kind.index+": ", kind.gets, overURLs)
		rows = append(rows, some...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func overFrontier(ctx context.Context, b *bench, kind, what string, gets float64, urls int) (rows []row, err error) {
	path, err := os.MkdirTemp("", "frontier")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(path)
	idle, err := b.startFrontier(ctx, &frontierServer{Kind: "nothing"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, idle.stop()) }()
	s, err := b.startFrontier(ctx, &frontierServer{Kind: kind, Path: path})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := b.profileOf(s.child, "frontier-"+kind+".prof"); err != nil {
		return nil, err
	}
	put := func(from int) func(*overClient) error {
		return func(c *overClient) error { return c.put(ctx, from, from+urls) }
	}
	for _, m := range []struct {
		what   string
		target float64
		do     func(*overClient) error
	}{
		{"put of new URLs", overNewTarget, put(0)},
		{fmt.Sprintf("put, one in %d is new", overNew), overKnownTarget, put(urls / overNew)},
		{"get and end", gets, func(c *overClient) error { return c.get(ctx, urls) }},
	} {
		nothing, err := idle.time(urls, put(0))
		if err != nil {
			return rows, fmt.Errorf("nothing: %w", err)
		}
		got, err := s.time(urls, m.do)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", m.what, err)
		}
		rows = append(rows, row{
			what:   what + m.what,
			target: fmt.Sprintf("≥ %.1f of puts into a service that does nothing", m.target),
			measured: fmt.Sprintf("%.2f: %s/s; CPU a URL: service %d ns, client %d ns", got.rate()/nothing.rate(),
				count(got.rate()), got.server.Nanoseconds(), got.client.Nanoseconds()),
			met: judge(got.rate() >= m.target*nothing.rate()),
			beside: fmt.Sprintf("a service that does nothing: %s/s; CPU a URL: service %d ns, client %d ns",
				count(nothing.rate()), nothing.server.Nanoseconds(), nothing.client.Nanoseconds()),
			how: fmt.Sprintf("%s URLs on %s hosts, %d clients", count(urls), count(overHosts), overCallers),
		})
	}
	return rows, nil
}

// over is the time that a URL took, and the CPU time of both sides.
type over struct{ took, server, client time.Duration }

func (o over) rate() float64 { return 1 / max(o.took, 1).Seconds() }

// overClient is a child with a frontierServer, and a connection to it for each caller.
type overClient struct {
	*child
	conns [overCallers]*grpc.ClientConn
}

func (b *bench) startFrontier(ctx context.Context, job *frontierServer) (*overClient, error) {
	var addr string
	c, err := b.start(ctx, "frontier", job, &addr)
	if err != nil {
		return nil, err
	}
	o := &overClient{child: c}
	for i := range o.conns {
		o.conns[i], err = grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, errors.Join(err, o.stop())
		}
	}
	return o, nil
}

func (c *overClient) stop() (err error) {
	for _, conn := range c.conns {
		if conn != nil {
			err = errors.Join(err, conn.Close())
		}
	}
	return errors.Join(err, c.child.stop())
}

// time measures do, which does something with n URLs.
func (c *overClient) time(n int, do func(*overClient) error) (o over, err error) {
	var before, after usage
	mine, err := readUsage()
	if err := errors.Join(err, c.ask("usage", "", &before)); err != nil {
		return o, err
	}
	began := time.Now()
	if err := do(c); err != nil {
		return o, err
	}
	o.took = time.Since(began) / time.Duration(n)
	if err := c.ask("usage", "", &after); err != nil {
		return o, err
	}
	now, err := readUsage()
	o.server, o.client = (after.CPU-before.CPU)/time.Duration(n), (now.CPU-mine.CPU)/time.Duration(n)
	return o, err
}

// each calls do once for each caller, at the same time.
func each(do func(caller int) error) error {
	var wg sync.WaitGroup
	var errs [overCallers]error
	for i := range overCallers {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// put puts the URLs with the numbers from one to another.
func (c *overClient) put(ctx context.Context, from, to int) error {
	return each(func(caller int) error {
		p, bad, err := c.putter(ctx, caller)
		if err != nil {
			return err
		}
		for i := from + caller; i < to && err == nil; i += overCallers {
			host := hostName(i % overHosts)
			err = p.Send(client.Discovered(&pb.URLInfo{Key: host,
				Url: fmt.Sprintf("https://%s/section-%02d/article-%09d.html", host, i%37, i)}))
		}
		return errors.Join(err, p.Close(), bad())
	})
}

// putter returns a Putter. After its Close bad tells whether an item was refused.
func (c *overClient) putter(ctx context.Context, caller int) (p *client.Putter, bad func() error, err error) {
	refused := 0
	p, err = client.New(c.conns[caller]).Put(ctx, func(_ *pb.URLItem, status pb.AckMessage_Status) {
		if status == pb.AckMessage_FAIL {
			refused++
		}
	})
	return p, func() error {
		if refused > 0 {
			return fmt.Errorf("%d items were refused", refused)
		}
		return nil
	}, err
}

// get gets n URLs and reports each as fetched.
func (c *overClient) get(ctx context.Context, n int) error {
	api := pb.NewURLFrontierClient(c.conns[0])
	if _, err := api.SetDelay(ctx, &pb.QueueDelayParams{DelayRequestable: 0}); err != nil {
		return err
	}
	var got atomic.Int64
	return each(func(caller int) error {
		p, bad, err := c.putter(ctx, caller)
		if err != nil {
			return err
		}
		for err == nil && got.Load() < int64(n) {
			for info, broken := range client.New(c.conns[caller]).Get(ctx, &pb.GetParams{MaxQueues: 100,
				MaxUrlsPerQueue: 10, DelayRequestable: 600}) {
				if err = broken; err == nil {
					err = p.Send(client.Known(info, 0))
				}
				if err != nil {
					break
				}
				got.Add(1)
			}
		}
		return errors.Join(err, p.Close(), bad())
	})
}

// frontierServer is the role of a URL Frontier.
type frontierServer struct {
	Kind string // "memory", "disk", or "nothing": it acknowledges each item at once
	Path string // of the index on disk

	stop  func() error // nil: it does not serve
	store io.Closer    // nil: nothing to close
}

// open returns the address of the service.
func (f *frontierServer) open(ctx context.Context) (ready any, err error) {
	urlserver.TuneGC(f.Kind == "disk")
	var store frontier.Store
	switch f.Kind {
	case "memory":
		store = memory.New()
	case "disk":
		s, err := disk.Open(disk.Config{Path: f.Path, Log: zerolog.Nop()})
		if err != nil {
			return nil, err
		}
		f.store, store = s, s
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	if store == nil {
		server := grpc.NewServer()
		pb.RegisterURLFrontierServer(server, idleFrontier{})
		go func() { ended <- server.Serve(l) }()
		f.stop = func() error { server.Stop(); return <-ended }
		return l.Addr().String(), nil
	}
	server, err := frontier.New(frontier.Config{Settings: configs.Default().Frontier, Store: store, Log: zerolog.Nop()})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() { ended <- server.Serve(ctx, l) }()
	f.stop = func() error { cancel(); return <-ended }
	return l.Addr().String(), nil
}

func (f *frontierServer) close() (err error) {
	if f.stop != nil {
		err = errors.Join(err, f.stop())
	}
	if f.store != nil {
		err = errors.Join(err, f.store.Close())
	}
	return err
}

// idleFrontier is a URL Frontier that does nothing.
type idleFrontier struct {
	pb.UnimplementedURLFrontierServer
}

func (idleFrontier) PutURLs(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage]) error {
	for {
		item, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = stream.Send(&pb.AckMessage{ID: item.ID, Status: pb.AckMessage_OK})
		}
		if err != nil {
			return err
		}
	}
}
