// Package access guards services: bearer tokens over gRPC, bounds for those who call, and callers' TLS from files.
package access

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

// guard lets in who brings the token. A health check needs none. A health watch does, as its streams last.
type guard struct {
	open   bool // no token is asked
	token  [sha256.Size]byte
	needed string // what to tell the others
	meter  *meter
}

func newGuard(token, setting string, m *meter) guard {
	return guard{token == "", sha256.Sum256([]byte(token)), "this service wants metadata \"authorization: Bearer TOKEN\" (" + setting + ")", m}
}

// IsBearer tells if a header's value brings the token.
func IsBearer(value, token string) bool {
	return guard{token: sha256.Sum256([]byte(token))}.opens(value)
}

func (g guard) opens(value string) bool {
	scheme, token, _ := strings.Cut(value, " ")
	sum := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// check is a tap.ServerInHandle: it looks before anything but the call's header is read, so that strangers take no memory.
func (g guard) check(ctx context.Context, call *tap.Info) (context.Context, error) {
	if g.meter.open.Load() > maxOpen {
		return nil, status.Errorf(codes.ResourceExhausted, "%d calls are under way at this service; try again later", maxOpen)
	}
	if g.open {
		return ctx, nil
	}
	for _, value := range call.Header.Get("authorization") {
		if g.opens(value) {
			TrustCaller(ctx)
			return ctx, nil
		}
	}
	if call.FullMethodName != grpc_health_v1.Health_Check_FullMethodName {
		return nil, status.Error(codes.Unauthenticated, g.needed)
	}
	c := meteredOf(ctx)
	if c == nil {
		return ctx, nil
	}
	if c.checks.Add(1) > strangerOpen {
		c.checks.Add(-1)
		return nil, status.Errorf(codes.ResourceExhausted, "without a token, a connection has at most %d calls at once", strangerOpen)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	context.AfterFunc(ctx, func() {
		c.checks.Add(-1)
		cancel()
	})
	return ctx, nil
}

// Bearer are a gRPC client's credentials: the token goes along with each call, also in the clear.
type Bearer string

// GetRequestMetadata is [credentials.PerRPCCredentials].
func (b Bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is [credentials.PerRPCCredentials].
func (Bearer) RequireTransportSecurity() bool { return false }
