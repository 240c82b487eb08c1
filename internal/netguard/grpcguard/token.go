// Package grpcguard protects gRPC servers: bearer tokens, and limits for each client and for all
// together. What it does for connections is in package netguard: programs without gRPC use that
// alone.
package grpcguard

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"urlserver/internal/netguard"
)

// guard admits calls that carry the token. A health check needs no token. A health watch does,
// because its stream stays open.
type guard struct {
	token  string // "": none is required
	needed string // the error message for the other calls
	meter  *meter
}

func newGuard(token, setting string, m *meter) guard {
	return guard{
		token: token, meter: m,
		needed: "this service wants metadata \"authorization: Bearer TOKEN\" (" + setting + ")",
	}
}

// check is a tap.ServerInHandle. gRPC calls it when only the call's header has been read, so that
// an unauthenticated call takes no memory.
func (g guard) check(ctx context.Context, call *tap.Info) (context.Context, error) {
	if g.meter.open.Load() > maxOpen {
		return nil, status.Errorf(codes.ResourceExhausted,
			"%d calls are under way at this service; try again later", maxOpen)
	}
	c := meteredOf(ctx)
	if g.token == "" || c != nil && c.allowed {
		return ctx, nil
	}
	for _, value := range call.Header.Get("authorization") {
		if netguard.IsBearer(value, g.token) {
			markAuthenticated(ctx)
			return ctx, nil
		}
	}
	if call.FullMethodName != grpc_health_v1.Health_Check_FullMethodName {
		return nil, status.Error(codes.Unauthenticated, g.needed)
	}
	if c == nil {
		return ctx, nil
	}
	if c.checks.Add(1) > unauthenticatedOpen {
		c.checks.Add(-1)
		return nil, status.Errorf(codes.ResourceExhausted,
			"without a token, a connection has at most %d calls at once", unauthenticatedOpen)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	context.AfterFunc(ctx, func() {
		c.checks.Add(-1)
		cancel()
	})
	return ctx, nil
}

// markAuthenticated ends the throttling of the connection of a call.
func markAuthenticated(ctx context.Context) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return
	}
	addr := p.Addr
	if a, ok := addr.(meteredAddr); ok {
		addr = a.Addr
	}
	netguard.MarkAuthenticated(addr)
}

// Bearer is a token as a gRPC client's credentials. The client sends it with each call, also
// without TLS.
type Bearer string

// GetRequestMetadata is [credentials.PerRPCCredentials].
func (b Bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is [credentials.PerRPCCredentials].
func (Bearer) RequireTransportSecurity() bool { return false }
