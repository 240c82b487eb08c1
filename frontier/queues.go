package frontier

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
)

// ListNodes returns this node alone: there is no cluster.
func (s *Server) ListNodes(context.Context, *pb.Empty) (*pb.StringList, error) {
	return &pb.StringList{Values: []string{s.node}}, nil
}

// ListCrawls lists the crawls that have a queue.
func (s *Server) ListCrawls(ctx context.Context, _ *pb.Local) (*pb.StringList, error) {
	all, err := s.store.Crawls(ctx)
	for i := range all {
		all[i] = shownCrawl(all[i])
	}
	return &pb.StringList{Values: all}, asStatus(err)
}

// scopeOf returns the queue, or the crawl if there is no key.
func scopeOf(crawl, key string) docindex.Scope {
	return docindex.Scope{Crawl: []byte(crawlID(crawl)), Key: []byte(key)}
}

// DeleteCrawl deletes a crawl and its documents.
func (s *Server) DeleteCrawl(ctx context.Context, in *pb.DeleteCrawlMessage) (*pb.Long, error) {
	defer s.lists.closeAll()
	n, err := s.store.Delete(ctx, scopeOf(in.Value, ""))
	return &pb.Long{Value: uint64(n)}, asStatus(err)
}

// DeleteQueue deletes a queue and its documents. Without a key it deletes nothing, so that no crawl
// is deleted by mistake.
func (s *Server) DeleteQueue(ctx context.Context, in *pb.QueueWithinCrawlParams) (*pb.Long, error) {
	if in.Key == "" {
		return &pb.Long{}, nil
	}
	defer s.lists.closeAll()
	n, err := s.store.Delete(ctx, scopeOf(in.CrawlID, in.Key))
	return &pb.Long{Value: uint64(n)}, asStatus(err)
}

// ListQueues lists keys in a stable order. Total is that of the moment when the list began.
func (s *Server) ListQueues(ctx context.Context, in *pb.Pagination) (*pb.QueueList, error) {
	of := listed{crawl: crawlID(in.CrawlID), queues: true, idle: in.IncludeInactive}
	out := &pb.QueueList{Start: in.Start, CrawlID: shownCrawl(of.crawl)}
	list := func(ctx context.Context, visit func(row) bool) error {
		return s.store.Queues(ctx, []byte(of.crawl), func(key []byte, idle bool) bool {
			return idle && !of.idle || visit(row{key: string(key)})
		})
	}
	total, err := s.lists.send(ctx, &page{
		of: of, start: uint64(in.Start), size: in.Size, list: list,
		total: func(ctx context.Context) (n uint64, err error) {
			err = list(ctx, func(row) bool { n++; return true })
			return n, err
		},
		send: func(r row) error { out.Values = append(out.Values, r.key); return nil },
	})
	out.Total, out.Size = total, uint32(len(out.Values))
	return out, asStatus(err)
}

// GetStats counts a queue, or a crawl if there is no key.
func (s *Server) GetStats(ctx context.Context, in *pb.QueueWithinCrawlParams) (*pb.Stats, error) {
	scope := scopeOf(in.CrawlID, in.Key)
	n, err := s.store.Count(ctx, &scope)
	if err != nil {
		return nil, asStatus(err)
	}
	return &pb.Stats{
		Size:           n.Scheduled + n.InTransit,
		InProcess:      uint32(n.InTransit),
		Counts:         map[string]uint64{"completed": n.Completed, "active_queues": n.Active},
		NumberOfQueues: n.Queues,
		CrawlID:        shownCrawl(crawlID(in.CrawlID)),
	}, nil
}

func (s *Server) set(ctx context.Context, which docindex.SettingKind, scope docindex.Scope,
	value uint64) (*pb.Empty, error) {
	if err := settable(scope); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	defer s.lists.closeAll()
	err := s.store.Set(ctx, docindex.Setting{Kind: which, Scope: scope, Value: value})
	return &pb.Empty{}, asStatus(err)
}

// settable returns an error if no URL can be in a queue, so the setting would have no effect.
// Without a key the setting is for all queues.
func settable(queue docindex.Scope) error {
	switch {
	case len(queue.Key) == 0:
		return nil
	case tooLong(string(queue.Key)):
		return errKey
	case len(queue.Crawl) > docindex.MaxExtra:
		return errCrawl
	case !utf8.Valid(queue.Key) || !utf8.Valid(queue.Crawl):
		return errUnicode
	}
	return nil
}

// BlockQueueUntil blocks one queue. Without a key it does nothing.
func (s *Server) BlockQueueUntil(ctx context.Context, in *pb.BlockQueueParams) (*pb.Empty, error) {
	if in.Key == "" {
		return &pb.Empty{}, nil
	}
	return s.set(ctx, docindex.SetBlock, scopeOf(in.CrawlID, in.Key), in.Time)
}

const errNoQueue = "no key: it says which queue is meant"

// SetDelay sets the delay of a queue, or of all queues that have none of their own.
func (s *Server) SetDelay(ctx context.Context, in *pb.QueueDelayParams) (*pb.Empty, error) {
	return s.set(ctx, docindex.SetDelay, scopeOf(in.CrawlID, in.Key), uint64(in.DelayRequestable))
}

// SetCrawlLimit sets the limit of a queue.
func (s *Server) SetCrawlLimit(ctx context.Context, in *pb.CrawlLimitParams) (*pb.Empty, error) {
	if in.Key == "" {
		return nil, status.Error(codes.InvalidArgument, errNoQueue)
	}
	return s.set(ctx, docindex.SetLimit, scopeOf(in.CrawlID, in.Key), uint64(in.Limit))
}

// SetActive sets the active flag: whether GetURLs serves URLs.
func (s *Server) SetActive(ctx context.Context, in *pb.Active) (*pb.Empty, error) {
	value := uint64(0)
	if in.State {
		value = 1
	}
	return s.set(ctx, docindex.SetActive, docindex.Scope{}, value)
}

// GetActive returns the active flag.
func (s *Server) GetActive(ctx context.Context, _ *pb.Local) (*pb.Boolean, error) {
	active, err := s.store.Active(ctx)
	return &pb.Boolean{State: active}, asStatus(err)
}

// SetLogLevel changes the level of the whole daemon's log. It accepts names of packages, as clients
// send them, and ignores them.
func (s *Server) SetLogLevel(_ context.Context, in *pb.LogLevelParams) (*pb.Empty, error) {
	level, ok := levels[in.Level]
	if !ok {
		return nil, status.Errorf(codes.InvalidArgument,
			"level %d: it has to be TRACE, DEBUG, INFO, WARN or ERROR", in.Level)
	}
	if s.setLevel != nil && (in.Package == "" || in.Package == "ROOT") {
		s.setLevel(level.String())
		s.log.Info().Stringer("level", level).Msg("frontier: log level set by a client")
	}
	return &pb.Empty{}, nil
}

var levels = map[pb.LogLevelParams_Level]zerolog.Level{
	pb.LogLevelParams_TRACE: zerolog.TraceLevel,
	pb.LogLevelParams_DEBUG: zerolog.DebugLevel,
	pb.LogLevelParams_INFO:  zerolog.InfoLevel,
	pb.LogLevelParams_WARN:  zerolog.WarnLevel,
	pb.LogLevelParams_ERROR: zerolog.ErrorLevel,
}

const maxDays = 100 * 366 // older than any URL; no Duration overflows

// PurgeURLs deletes URLs by age. days 0 deletes all, also those of this second.
func (s *Server) PurgeURLs(ctx context.Context, in *pb.PurgeUrlParams) (*pb.Long, error) {
	before := time.Now().Add(-time.Duration(min(in.Days, maxDays)) * 24 * time.Hour)
	if in.Days == 0 {
		before = before.Add(time.Second)
	}
	defer s.lists.closeAll()
	n, err := s.store.Purge(ctx, scopeOf(in.CrawlID, in.Key), before)
	return &pb.Long{Value: uint64(n)}, asStatus(err)
}
