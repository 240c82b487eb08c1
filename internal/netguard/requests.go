package netguard

import (
	"context"
	"errors"
)

// requestsKey is the key under which a context of WithRequests has the context that it was made from.
type requestsKey struct{}

// WithRequests returns a context for the requests of an HTTP server; it ends with the given one.
func WithRequests(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestsKey{}, ctx)
}

// Requests returns the context of all requests of the server that serves the one with ctx; nil: it is
// none of a server with WithRequests.
func Requests(ctx context.Context) context.Context {
	requests, _ := ctx.Value(requestsKey{}).(context.Context)
	return requests
}

// ReasonOf returns err, or why the request with ctx ended where err says only that it has ended.
func ReasonOf(ctx context.Context, err error) error {
	requests := Requests(ctx)
	if requests != nil && requests.Err() == nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("the client has closed its side of the connection")
	}
	return err
}
