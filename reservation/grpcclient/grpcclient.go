// Package grpcclient is a reservation.Store that calls a host reservation service.
package grpcclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	pb "urlserver/api/reservation"
	"urlserver/internal/netguard"
	"urlserver/internal/netguard/grpcguard"
	"urlserver/reservation"
)

const (
	callTime   = 10 * time.Second // of one call without a deadline of its own
	parallel   = 64               // concurrent calls of one Do
	maxMessage = 32 << 20
)

// Config is the configuration of a Store.
type Config struct {
	Addrs []string // "host:port" of services that share a store
	Token string
	TLS   *tls.Config // nil: plain TCP
}

// Store is a client of host reservation services. Create it with New, and Close it.
type Store struct {
	reservation.SingleCalls
	conn   *grpc.ClientConn
	client pb.HostReservationClient
	clock  clock
}

var _ reservation.Store = (*Store)(nil)

// New returns a store. It connects on first use. Calls go to the services in turn; services that do
// not answer are skipped.
func New(cfg Config) (*Store, error) {
	services := manual.NewBuilderWithScheme("services")
	var state resolver.State
	for _, addr := range cfg.Addrs {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("host reservation service %q: %w", addr, err)
		}
		state.Endpoints = append(state.Endpoints,
			resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr, ServerName: host}}})
	}
	services.InitialState(state)
	creds := insecure.NewCredentials()
	if cfg.TLS != nil {
		creds = credentials.NewTLS(cfg.TLS)
	}
	watch := newWatch(creds)
	options := []grpc.DialOption{
		grpc.WithResolvers(services),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithTransportCredentials(watch), grpc.WithUnaryInterceptor(watch.intercept),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second,
			Timeout: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6,
				Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
	}
	if cfg.Token != "" {
		options = append(options, grpc.WithPerRPCCredentials(grpcguard.Bearer(cfg.Token)),
			grpc.WithChainUnaryInterceptor(discreet(cfg.Token)))
	}
	conn, err := grpc.NewClient("services:///", options...)
	if err != nil {
		return nil, fmt.Errorf("host reservation services %q: %w", cfg.Addrs, err)
	}
	s := &Store{conn: conn, client: pb.NewHostReservationClient(conn)}
	s.SingleCalls.Batcher = s
	return s, nil
}

// Close closes all connections.
func (s *Store) Close() error { return s.conn.Close() }

// discreet removes the token from the texts of errors, in case a service repeats it.
func discreet(token string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return netguard.Redact(invoke(ctx, method, req, reply, conn, opts...), token)
	}
}

// failure returns the store's error for an error of a service.
func failure(err error) error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	var kind error
	switch st.Code() {
	case codes.FailedPrecondition:
		kind = reservation.ErrStale
	case codes.InvalidArgument:
		kind = reservation.ErrInvalid
	case codes.DataLoss:
		kind = reservation.ErrBroken
	case codes.NotFound:
		kind = notFound(st.Message())
	default:
		return fmt.Errorf("host reservation service: %w", err)
	}
	return serviceError{kind: kind, text: st.Message()}
}

// notFound tells apart the two errors that NOT_FOUND stands for. An unknown text may be either.
func notFound(text string) error {
	for _, kind := range []error{reservation.ErrUnknown, reservation.ErrNotNow} {
		if strings.HasPrefix(text, kind.Error()) {
			return kind
		}
	}
	return errors.Join(reservation.ErrNotNow, reservation.ErrUnknown)
}

// serviceError is an error of package reservation with a service's text, which begins with the
// error's own.
type serviceError struct {
	kind error
	text string
}

func (t serviceError) Error() string { return t.text }
func (t serviceError) Unwrap() error { return t.kind }

// call makes one call within its time.
func call[Q, A any](ctx context.Context, f func(context.Context, *Q, ...grpc.CallOption) (*A, error),
	req *Q) (*A, error) {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTime)
		defer cancel()
	}
	answer, err := f(ctx, req)
	return answer, failure(err)
}

// Do implements [reservation.Store.Do]. A call that is cut off may have had its effect: a lease that
// nobody knows of. So Do begins no call in the second half of the time that ctx leaves; those that
// are left fail with [context.DeadlineExceeded].
func (s *Store) Do(ctx context.Context, calls []reservation.Call) []reservation.Answer {
	answers := make([]reservation.Answer, len(calls))
	if len(calls) == 1 {
		answers[0] = s.do(ctx, calls[0])
		return answers
	}
	late := context.Background()
	if end, has := ctx.Deadline(); has {
		var cancel context.CancelFunc
		late, cancel = context.WithTimeout(late, time.Until(end)/2)
		defer cancel()
	}
	var at sync.WaitGroup
	workers := min(parallel, len(calls))
	for w := range workers {
		at.Go(func() {
			for i := w; i < len(calls); i += workers {
				if err := late.Err(); err != nil {
					answers[i].Err = fmt.Errorf("host reservation service: too slow for so many calls: %w", err)
					continue
				}
				answers[i] = s.do(ctx, calls[i])
			}
		})
	}
	at.Wait()
	return answers
}

func (s *Store) do(ctx context.Context, c reservation.Call) (out reservation.Answer) {
	c, err := c.Checked()
	if err != nil {
		return reservation.Answer{Err: err}
	}
	began, lease := time.Now(), c.Lease.Milliseconds()
	whole := time.Duration(lease) * time.Millisecond // as the service counts it
	at := reservation.Millis(c.Time)
	if c.After > 0 {
		at = s.clock.in(c.After)
	}
	switch c.Verb {
	case reservation.AddHost:
		a, err := call(ctx, s.client.AddHost, &pb.AddHostRequest{Host: c.Host, EarliestMs: at})
		out.Added, out.Err = a.GetAdded(), err
	case reservation.DeleteHost:
		_, out.Err = call(ctx, s.client.DeleteHost, &pb.DeleteHostRequest{Host: c.Host,
			Token: c.Token, NextMs: at})
	case reservation.TryReserve:
		a, err := call(ctx, s.client.TryReserve,
			&pb.TryReserveRequest{Host: c.Host, LeaseMs: lease, Holder: c.Holder})
		if out.Err = err; err == nil {
			out.Reservation = taken(a)
			s.clock.learn(began, out.Reservation.LeaseEnd.Add(-whole))
		}
	case reservation.ExtendHost:
		a, err := call(ctx, s.client.ExtendHost,
			&pb.ExtendHostRequest{Host: c.Host, Token: c.Token, LeaseMs: lease})
		if out.LeaseEnd, out.Err = reservation.Time(a.GetLeaseEndMs()), err; err == nil {
			s.clock.learn(began, out.LeaseEnd.Add(-whole))
		}
	case reservation.ReleaseHost:
		_, out.Err = call(ctx, s.client.ReleaseHost,
			&pb.ReleaseHostRequest{Host: c.Host, Token: c.Token, NextMs: at})
	}
	return out
}

func taken(r *pb.Reservation) reservation.Reservation {
	return reservation.Reservation{Host: r.GetHost(), Group: r.GetGroup(), Token: r.GetToken(),
		LeaseEnd: reservation.Time(r.GetLeaseEndMs())}
}

// ReserveNextHost implements [reservation.Store.ReserveNextHost].
func (s *Store) ReserveNextHost(ctx context.Context, lease time.Duration, most int,
	holder string) (list []reservation.Reservation, err error) {
	ms, err := reservation.LeaseMillis(lease)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	a, err := call(ctx, s.client.ReserveNextHost, &pb.ReserveNextHostRequest{
		LeaseMs: ms, Max: uint32(min(max(most, 0), reservation.MaxReserve)), Holder: holder,
	})
	for _, r := range a.GetReservations() {
		list = append(list, taken(r))
	}
	if len(list) > 0 {
		s.clock.learn(began, list[0].LeaseEnd.Add(-time.Duration(ms)*time.Millisecond))
	}
	return list, err
}

// SetAlias implements [reservation.Store.SetAlias].
func (s *Store) SetAlias(ctx context.Context, alias string, hosts []string) error {
	_, err := call(ctx, s.client.SetAlias, &pb.Alias{Alias: alias, Hosts: hosts})
	return err
}

// JoinAlias implements [reservation.Store.JoinAlias]. An old service answers UNIMPLEMENTED.
func (s *Store) JoinAlias(ctx context.Context, alias string, hosts []string) ([]string, error) {
	a, err := call(ctx, s.client.JoinAlias, &pb.Alias{Alias: alias, Hosts: hosts})
	return a.GetGroups(), err
}

// GetAlias implements [reservation.Store.GetAlias].
func (s *Store) GetAlias(ctx context.Context, name string) (alias string, hosts []string, err error) {
	a, err := call(ctx, s.client.GetAlias, &pb.HostRequest{Host: name})
	return a.GetAlias(), a.GetHosts(), err
}

// Bind implements [reservation.Store.Bind].
func (s *Store) Bind(ctx context.Context, bindings []reservation.Binding,
	ttl time.Duration) ([]reservation.Bound, error) {
	req := &pb.BindRequest{TtlMs: ttl.Milliseconds()}
	for _, b := range bindings {
		req.Bindings = append(req.Bindings, &pb.Binding{Host: b.Host, Group: b.Group})
	}
	a, err := call(ctx, s.client.Bind, req)
	all := make([]reservation.Bound, len(a.GetGroups()))
	for i, group := range a.GetGroups() {
		all[i].Group = group
		if left := a.GetLeftMs(); i < len(left) { // a service of an earlier version does not tell
			all[i].Left = time.Duration(left[i]) * time.Millisecond
		}
	}
	return all, err
}

// Stats implements [reservation.Store.Stats].
func (s *Store) Stats(ctx context.Context) (reservation.Stats, error) {
	a, err := call(ctx, s.client.Stats, &pb.Empty{})
	return reservation.Stats{
		Hosts: a.GetHosts(), Waiting: a.GetWaiting(), Ready: a.GetReady(), Busy: a.GetBusy(),
		Aliases: a.GetAliases(), Repaired: a.GetRepaired(),
	}, err
}

// Explain implements [reservation.Store.Explain].
func (s *Store) Explain(ctx context.Context, host string) (reservation.Explanation, error) {
	a, err := call(ctx, s.client.Explain, &pb.HostRequest{Host: host})
	return reservation.Explanation{
		Host: a.GetHost(), Group: a.GetGroup(), State: reservation.State(a.GetState()),
		Until: reservation.Time(a.GetUntilMs()),
		Rule:  a.GetRule(), Holder: a.GetHolder(),
	}, err
}

// Sweep does nothing: the service sweeps its store.
func (*Store) Sweep(context.Context) error { return nil }
