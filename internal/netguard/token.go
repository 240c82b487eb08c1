// Package netguard protects listeners and gRPC servers: bearer tokens, limits for each client and
// for all together, throttling of unauthenticated connections, and TLS from files.
package netguard

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// guard admits calls that carry the token. A health check needs no token. A health watch does,
// because its stream stays open.
type guard struct {
	open   bool // no token is required
	token  [sha256.Size]byte
	needed string // the error message for the other calls
	meter  *meter
}

func newGuard(token, setting string, m *meter) guard {
	return guard{
		open: token == "", token: sha256.Sum256([]byte(token)), meter: m,
		needed: "this service wants metadata \"authorization: Bearer TOKEN\" (" + setting + ")",
	}
}

// IsBearer reports whether the value of an Authorization header carries the token.
func IsBearer(value, token string) bool {
	return guard{token: sha256.Sum256([]byte(token))}.opens(value)
}

func (g guard) opens(value string) bool {
	scheme, token, _ := strings.Cut(value, " ")
	sum := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// check is a tap.ServerInHandle. gRPC calls it when only the call's header has been read, so that
// an unauthenticated call takes no memory.
func (g guard) check(ctx context.Context, call *tap.Info) (context.Context, error) {
	if g.meter.open.Load() > maxOpen {
		return nil, status.Errorf(codes.ResourceExhausted,
			"%d calls are under way at this service; try again later", maxOpen)
	}
	c := meteredOf(ctx)
	if g.open || c != nil && c.allowed {
		return ctx, nil
	}
	for _, value := range call.Header.Get("authorization") {
		if g.opens(value) {
			MarkCallerAuthenticated(ctx)
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

// Bearer is a token as a gRPC client's credentials. The client sends it with each call, also
// without TLS.
type Bearer string

// GetRequestMetadata is [credentials.PerRPCCredentials].
func (b Bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is [credentials.PerRPCCredentials].
func (Bearer) RequireTransportSecurity() bool { return false }
