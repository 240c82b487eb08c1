package frontier

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
)

// GetURLStatus returns the state of a URL.
func (s *Server) GetURLStatus(ctx context.Context, in *pb.URLStatusRequest) (*pb.URLItem, error) {
	queue, err := queueOf(in.CrawlID, in.Key, in.Url)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	d, err := s.store.Find(ctx, queue, []byte(in.Url))
	if err != nil {
		return nil, asStatus(err)
	}
	return known(&d), nil
}

// filter selects URLs that contain a text. The zero value selects all.
type filter struct {
	text   string
	folded bool
}

func newFilter(text string, ignoreCase bool) filter {
	if strings.TrimSpace(text) == "" {
		return filter{}
	}
	if ignoreCase {
		text = strings.ToLower(text)
	}
	return filter{text: text, folded: ignoreCase}
}

func (f filter) takes(url []byte) bool {
	if f.text == "" {
		return true
	}
	text := string(url)
	if f.folded {
		text = strings.ToLower(text)
	}
	return strings.Contains(text, f.text)
}

// ListURLs streams a page of a queue, or of a crawl if there is no key.
func (s *Server) ListURLs(in *pb.ListUrlParams, stream grpc.ServerStreamingServer[pb.URLItem]) error {
	left := in.Size
	if left == 0 {
		left = pageSize
	}
	skip, f := in.Start, newFilter(in.GetFilter(), in.GetIgnoreCase())
	var failed error
	err := s.store.List(stream.Context(), scopeOf(in.CrawlID, in.Key), func(d *docindex.Document) bool {
		if !f.takes(d.URL) {
			return true
		}
		if skip > 0 {
			skip--
			return true
		}
		if failed = stream.SendMsg(known(d)); failed != nil {
			return false
		}
		left--
		return left > 0
	})
	if failed != nil {
		return failed
	}
	return asStatus(err)
}

// CountURLs counts a queue, or a crawl if there is no key.
func (s *Server) CountURLs(ctx context.Context, in *pb.CountUrlParams) (*pb.Long, error) {
	scope := scopeOf(in.CrawlID, in.Key)
	f := newFilter(in.GetFilter(), in.GetIgnoreCase())
	if f.text == "" {
		n, err := s.store.Count(ctx, &scope)
		return &pb.Long{Value: n.Scheduled + n.InTransit + n.Completed}, asStatus(err)
	}
	out := &pb.Long{}
	err := s.store.List(ctx, scope, func(d *docindex.Document) bool {
		if f.takes(d.URL) {
			out.Value++
		}
		return true
	})
	return out, asStatus(err)
}
