// Package client is a small client of a URL Frontier. It puts URLs, with an answer for each, and
// gets URLs. The generated client has all other calls. The caller connects, and reconnects.
package client

import (
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc"

	pb "urlserver/api/urlfrontier"
)

// Client makes calls on a connection. It is safe for concurrent use.
type Client struct{ api pb.URLFrontierClient }

// New returns a client on a connection. The connection stays the caller's.
func New(conn grpc.ClientConnInterface) *Client { return &Client{pb.NewURLFrontierClient(conn)} }

// Token is the value of frontier.token, for grpc.WithPerRPCCredentials. It is sent without TLS,
// too.
type Token string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t Token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(t)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (t Token) RequireTransportSecurity() bool { return false }

// Discovered returns an item for a URL that was found. If the URL is known it does not change.
func Discovered(info *pb.URLInfo) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: info}}}
}

// Known returns an item that reports the result of a URL: it is to be fetched again from date on,
// in seconds since 1970; 0: never.
func Known(info *pb.URLInfo, date uint64) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info,
		RefetchableFromDate: date}}}
}

// Get yields URLs that may be fetched now, as they arrive. It ends with the first error, which
// comes without a URL. The call ends when the caller leaves the loop.
func (c *Client) Get(ctx context.Context, what *pb.GetParams) iter.Seq2[*pb.URLInfo, error] {
	return func(yield func(*pb.URLInfo, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := c.api.GetURLs(ctx, what)
		for err == nil {
			var info *pb.URLInfo
			if info, err = stream.Recv(); err == nil && !yield(info, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(nil, err)
		}
	}
}
