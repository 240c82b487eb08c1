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
	scope, f := scopeOf(in.CrawlID, in.Key), newFilter(in.GetFilter(), in.GetIgnoreCase())
	_, err := s.lists.send(stream.Context(), &page{
		of: listed{crawl: string(scope.Crawl), key: in.Key, filter: f}, start: uint64(in.Start), size: in.Size,
		list: func(ctx context.Context, visit func(row) bool) error {
			return s.store.List(ctx, scope, func(d *docindex.Document) bool {
				return !f.takes(d.URL) || visit(row{doc: d})
			})
		},
		send: func(r row) error { return stream.SendMsg(known(r.doc)) },
	})
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
