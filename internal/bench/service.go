package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"

	pb "urlserver/api/reservation"
	"urlserver/reservation/grpcclient"
	"urlserver/reservation/grpcserver"
	"urlserver/reservation/redis"
)

const (
	servedTarget = 0.5
	servedTurns  = 3
	servedPrefix = "s:"
)

// service is the role of a host reservation service.
type service struct {
	Redis string // the address of its store; "": it answers at once, and does nothing

	stop func() error
}

// open returns the address of the service.
func (s *service) open(ctx context.Context) (ready any, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	if s.Redis == "" {
		server := grpc.NewServer()
		pb.RegisterHostReservationServer(server, nothing{})
		go func() { ended <- server.Serve(l) }()
		s.stop = func() error { server.Stop(); return <-ended }
		return l.Addr().String(), nil
	}
	store := redis.New(redis.Config{Addrs: []string{s.Redis}, Prefix: servedPrefix})
	server := grpcserver.New(grpcserver.Config{Store: store})
	ctx, cancel := context.WithCancel(ctx)
	go func() { ended <- server.Serve(ctx, l) }()
	s.stop = func() error { cancel(); defer store.Close(); return <-ended }
	return l.Addr().String(), nil
}

func (s *service) close() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// nothing is a host reservation service without a store.
type nothing struct {
	pb.UnimplementedHostReservationServer
}

func (nothing) ReserveNextHost(_ context.Context, req *pb.ReserveNextHostRequest) (*pb.ReserveNextHostResponse, error) {
	return &pb.ReserveNextHostResponse{Reservations: []*pb.Reservation{{
		Host: "h1.test", Group: "h1.test", Token: 1, LeaseEndMs: time.Now().UnixMilli() + req.LeaseMs,
	}}}, nil
}

func (nothing) ReleaseHost(context.Context, *pb.ReleaseHostRequest) (*pb.Empty, error) {
	return &pb.Empty{}, nil
}

// pairsServed measures reservations and releases through a host reservation service, and in turn
// with these through one that does nothing.
func pairsServed(ctx context.Context, b *bench, server *redisServer) (r row, err error) {
	fill := redis.New(redis.Config{Addrs: []string{server.addr}, Prefix: servedPrefix})
	err = addGroups(ctx, fill, 10_000)
	fill.Close()
	if err != nil {
		return r, err
	}
	var runs [2][]pairs
	for range servedTurns {
		for i, addr := range []string{server.addr, ""} {
			p, err := runServed(ctx, b, server, addr)
			if err != nil {
				return r, err
			}
			runs[i] = append(runs[i], p)
		}
	}
	got, idle := medianOf(runs[0]), medianOf(runs[1])
	return row{
		what:   fmt.Sprintf("reserve and release through a service over gRPC and one Redis: %d callers", pairsCallers),
		target: fmt.Sprintf("≥ %.1f of a service that does nothing", servedTarget),
		measured: fmt.Sprintf("%.2f: %s/s; CPU of a pair: Redis %.0f µs, service %.0f µs, callers %.0f µs",
			got.rate/idle.rate, count(got.rate), micros(got.redis), micros(got.service), micros(got.callers)),
		met: judge(got.rate >= servedTarget*idle.rate),
		beside: fmt.Sprintf("a service that does nothing: %s/s; CPU of a pair: service %.0f µs, callers %.0f µs",
			count(idle.rate), micros(idle.service), micros(idle.callers)),
		how: fmt.Sprintf("1,000 of 10,000 groups are due; the callers share one connection; medians of %d "+
			"turns of %v", servedTurns, pairsTime),
	}, nil
}

func medianOf(runs []pairs) pairs {
	slices.SortFunc(runs, func(a, b pairs) int { return cmp.Compare(a.rate, b.rate) })
	return runs[len(runs)/2]
}

// runServed measures pairs through a service with its store in Redis, or through one that does
// nothing if that is "".
func runServed(ctx context.Context, b *bench, server *redisServer, redis string) (p pairs, err error) {
	var addr string
	c, err := b.start(ctx, "reservation", &service{Redis: redis}, &addr)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	s, err := grpcclient.New(grpcclient.Config{Addrs: []string{addr}})
	if err != nil {
		return p, err
	}
	defer s.Close()
	if err := pair(ctx, s); err != nil { // it connects
		return p, err
	}
	var before, after usage
	if err := c.ask("usage", "", &before); err != nil {
		return p, err
	}
	p, err = pairsThrough(ctx, s, server)
	if err != nil {
		return p, err
	}
	err = c.ask("usage", "", &after)
	p.service = time.Duration(float64(after.CPU-before.CPU) / (p.rate * pairsTime.Seconds()))
	return p, err
}
