package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// outlives is how long a change goes on whose client has closed its side of the connection. The client may
// have gone, and its connection is one of those that the listener has.
const outlives = ioTimeout

// requestsKey is the key of a context under which withRequests notes that context.
type requestsKey struct{}

// withRequests returns a context for the requests of a server; it ends with the given one.
func withRequests(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestsKey{}, ctx)
}

// outliving returns r with a context that does not end when its client closes its side of the
// connection, but some time later: the client may wait for the answer to a change. It ends with all
// requests of the server, too, and when done is called.
//
// Two kinds of requests keep r's context. What only reads ends with its client: others may wait for the
// same list. Nobody is handed candidates who has gone: they would be out until their lease ends.
func outliving(r *http.Request) (_ *http.Request, done func()) {
	requests, ok := r.Context().Value(requestsKey{}).(context.Context)
	if !ok || r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Path == "/docindex/candidates" {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(requests, cancel)
	keep := context.AfterFunc(r.Context(), func() { time.AfterFunc(outlives, cancel) })
	return r.WithContext(ctx), func() { stop(); keep(); cancel() }
}

// reasonOf returns err, or why r ended where err says only that it has ended.
func reasonOf(r *http.Request, err error) error {
	requests, ok := r.Context().Value(requestsKey{}).(context.Context)
	if ok && requests.Err() == nil && r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("the client has closed its side of the connection")
	}
	return err
}
