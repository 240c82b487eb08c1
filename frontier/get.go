package frontier

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
)

// defaultLease is the meaning of delay_requestable 0.
const defaultLease = 30 * time.Second

// GetURLs streams URLs that may be fetched now. A key without a crawl means that key in every
// crawl.
func (s *Server) GetURLs(in *pb.GetParams, stream grpc.ServerStreamingServer[pb.URLInfo]) error {
	s.counters.getCalls.Add(1)
	began := time.Now()
	defer func() { s.counters.getTime.Add(int64(time.Since(began))) }()
	crawl, one := in.Item.(*pb.GetParams_CrawlID)
	if s.stopping.Load() {
		return nil
	}
	if active, err := s.store.Active(stream.Context()); err != nil || !active {
		return asStatus(err)
	}
	r := docindex.Request{
		AnyCrawl: !one, PerQueue: in.MaxUrlsPerQueue, MaxQueues: in.MaxQueues,
		Lease: lease(in.DelayRequestable),
	}
	r.Key = []byte(in.Key)
	if one {
		r.Crawl = []byte(crawlID(crawl.CrawlID))
	}
	var out pb.URLInfo
	err := s.store.Serve(stream.Context(), r, func(h *docindex.Served) error {
		s.counters.got.Add(int64(h.Len()))
		for i := range h.Len() {
			p := h.At(i)
			fill(&out, &p)
			if err := stream.SendMsg(&out); err != nil {
				return err
			}
		}
		return nil
	})
	return asStatus(err)
}

func lease(seconds uint32) time.Duration {
	if seconds == 0 {
		return defaultLease
	}
	return time.Duration(seconds) * time.Second
}

// asStatus gives an error of the store its gRPC code.
func asStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	switch {
	case errors.Is(err, docindex.ErrUnknown):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, docindex.ErrTooMany), errors.Is(err, docindex.ErrFull):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, docindex.ErrUnavailable):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Internal, err.Error())
}
