// Package access guards services: bearer tokens over gRPC, bounds for those who call, and callers' TLS from files.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// guard lets in who brings the token; health checks need none.
type guard struct {
	token  [sha256.Size]byte
	needed string // what to tell the others
}

// Guard has a gRPC server answer only those who bring the token; "" lets in everybody. setting is what the operator
// calls the token.
func Guard(token, setting string) []grpc.ServerOption {
	if token == "" {
		return nil
	}
	g := guard{sha256.Sum256([]byte(token)), "this service wants metadata \"authorization: Bearer TOKEN\" (" + setting + ")"}
	return []grpc.ServerOption{grpc.InTapHandle(g.check)}
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
	if strings.HasPrefix(call.FullMethodName, "/"+grpc_health_v1.Health_ServiceDesc.ServiceName+"/") {
		return ctx, nil
	}
	for _, value := range call.Header.Get("authorization") {
		if g.opens(value) {
			TrustCaller(ctx)
			return ctx, nil
		}
	}
	return nil, status.Error(codes.Unauthenticated, g.needed)
}

// Bearer are a gRPC client's credentials: the token goes along with each call, also in the clear.
type Bearer string

// GetRequestMetadata is [credentials.PerRPCCredentials].
func (b Bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is [credentials.PerRPCCredentials].
func (Bearer) RequireTransportSecurity() bool { return false }
