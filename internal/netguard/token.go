// Package netguard protects listeners: bearer tokens, limits of connections, throttling of
// unauthenticated ones, and TLS from files. Its package grpcguard protects gRPC servers.
package netguard

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
)

// IsBearer reports whether the value of an Authorization header carries the token.
func IsBearer(value, token string) bool {
	scheme, got, _ := strings.Cut(value, " ")
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
