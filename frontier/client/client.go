// Package client is a small client of a URL Frontier: it puts URLs with an answer to each, and gets URLs. For all
// other calls there is the generated client. Whoever uses it connects, and connects again.
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

// New returns a client on a connection, which stays the caller's.
func New(conn grpc.ClientConnInterface) *Client { return &Client{pb.NewURLFrontierClient(conn)} }

// Token is what frontier.token asks for, to be given to grpc.WithPerRPCCredentials. It goes along without TLS, too.
type Token string

// GetRequestMetadata is for package credentials.
func (t Token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(t)}, nil
}

// RequireTransportSecurity is for package credentials.
func (t Token) RequireTransportSecurity() bool { return false }

// Discovered is an item for a URL that was found; where it is known already it stays as it is.
func Discovered(info *pb.URLInfo) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: info}}}
}

// Known is an item with news of a URL: it is to be fetched again from a date on, seconds since 1970; 0: never. What was
// got is reported so.
func Known(info *pb.URLInfo, date uint64) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info, RefetchableFromDate: date}}}
}

// Get gets URLs that may be fetched now, as they come. It ends with the first error, which comes without a URL; who
// leaves the loop ends the call.
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
