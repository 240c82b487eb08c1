package httpapi

import (
	"context"
	"net/http"
	"time"

	"urlserver/internal/netguard"
)

// outlives is how long a change goes on whose client has closed its side of the connection. The client may
// have gone, and its connection is one of those that the listener has.
const outlives = ioTimeout

// outliving returns r with a context that does not end when its client closes its side of the
// connection, but some time later: the client may wait for the answer to a change. It ends with all
// requests of the server, too, and when done is called.
//
// Two kinds of requests keep r's context. What only reads ends with its client: others may wait for the
// same list. Nobody is handed candidates who has gone: they would be out until their lease ends.
func outliving(r *http.Request) (_ *http.Request, done func()) {
	requests := netguard.Requests(r.Context())
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if requests == nil || reads || r.URL.Path == "/docindex/candidates" {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(requests, cancel)
	keep := context.AfterFunc(r.Context(), func() { time.AfterFunc(outlives, cancel) })
	return r.WithContext(ctx), func() { stop(); keep(); cancel() }
}
