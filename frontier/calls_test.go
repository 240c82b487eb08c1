package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/frontier"
)

const untilEnd = 3600 // s: a lease that ends with the test at the soonest

func TestGet(t *testing.T) {
	r := newRig(t, nil)
	meta := map[string]*pb.StringList{"depth": {Values: []string{"1"}}, "priority": {Values: []string{"7"}}}
	r.put(
		discovered("http://Gac.icann.org?language_id=9"),
		discoveredInfo(&pb.URLInfo{Url: "http://u:p@b.test:80/x#f", Key: "k", CrawlID: " ", Metadata: meta}),
		discoveredInfo(&pb.URLInfo{Url: "http://b.test/y", Key: "k", CrawlID: "c"}),
	)
	in := func(crawl string) *pb.GetParams {
		return &pb.GetParams{Item: &pb.GetParams_CrawlID{CrawlID: crawl}, DelayRequestable: untilEnd}
	}
	var got []string
	for _, info := range r.get(in("")) {
		got = append(got, fmt.Sprintf("%s %s %s %d", info.Url, info.Key, info.CrawlID, len(info.Metadata)))
	}
	slices.Sort(got)
	want := []string{"http://Gac.icann.org?language_id=9 gac.icann.org DEFAULT 0",
		"http://u:p@b.test:80/x#f k DEFAULT 2"}
	if !slices.Equal(got, want) {
		t.Errorf("served are %q; want %q", got, want)
	}
	r.put(discoveredInfo(&pb.URLInfo{Url: "http://c.test/", CrawlID: "other"}))
	for _, c := range []struct {
		name string
		in   *pb.GetParams
		want int
	}{
		{"unknown crawl", in("d"), 0},
		{"what is leased", in("DEFAULT"), 0},
		{"unknown key", &pb.GetParams{Key: "none"}, 0},
		{"key without a crawl: that of each, and one is leased", &pb.GetParams{Key: "k"}, 1},
		{"key in any crawl, all leased", &pb.GetParams{Key: "k",
			Item: &pb.GetParams_AnyCrawlID{AnyCrawlID: &pb.AnyCrawlID{}}}, 0},
		{"limits beyond int32", &pb.GetParams{MaxQueues: 1 << 31, MaxUrlsPerQueue: 1<<32 - 1}, 1},
	} {
		c.in.DelayRequestable = untilEnd
		if got := r.get(c.in); len(got) != c.want {
			t.Errorf("%s: %d URLs are served; want %d", c.name, len(got), c.want)
		}
	}
}

// three has a scheduled URL with metadata, a completed one and a discovered one.
func three(t *testing.T) (r *rig, date uint64) {
	r = newRig(t, nil)
	date = uint64(time.Now().Unix()) + 1000
	withMeta := known("http://a.test/Later", date)
	withMeta.GetKnown().Info.Metadata = map[string]*pb.StringList{"m": {Values: []string{"v"}}}
	r.put(withMeta, known("http://a.test/done", 0), discovered("http://b.test/1"))
	return r, date
}

func TestStatus(t *testing.T) {
	r, date := three(t)
	ctx := soon(t)
	state := func(url string) *pb.URLItem {
		return must[*pb.URLItem](t)(r.GetURLStatus(ctx, &pb.URLStatusRequest{Url: url}))
	}
	if k := state("http://a.test/Later"); k.GetKnown().GetRefetchableFromDate() != date ||
		len(k.GetKnown().Info.Metadata) != 1 || k.CreationDate < date-1010 {
		t.Errorf("status of a scheduled URL is %v", k)
	}
	if k := state("http://a.test/done").GetKnown(); k.GetRefetchableFromDate() != 0 ||
		k.Info.CrawlID != "DEFAULT" || k.Info.Key != "a.test" {
		t.Errorf("status of a completed URL is %v", k)
	}
	if k := state("http://b.test/1").GetKnown(); k.GetRefetchableFromDate() == 0 ||
		k.GetRefetchableFromDate() >= date {
		t.Errorf("status of a discovered URL is %v; want its date", k)
	}
	for url, want := range map[string]codes.Code{"http://b.test/2": codes.NotFound, "": codes.InvalidArgument} {
		if _, err := r.GetURLStatus(ctx, &pb.URLStatusRequest{Url: url}); status.Code(err) != want {
			t.Errorf("status of %q: %v; want %v", url, err, want)
		}
	}
}

func TestLists(t *testing.T) {
	r, _ := three(t)
	ctx := soon(t)
	text := func(s string) *string { return &s }
	yes := true
	for _, c := range []struct {
		name  string
		in    *pb.ListUrlParams
		want  string
		count uint64 // without start and size
	}{
		{"all", &pb.ListUrlParams{}, "http://a.test/Later http://a.test/done http://b.test/1", 3},
		{"queue", &pb.ListUrlParams{Key: "b.test"}, "http://b.test/1", 1},
		{"page", &pb.ListUrlParams{Start: 1, Size: 1}, "http://a.test/done", 3},
		{"filter", &pb.ListUrlParams{Filter: text("later")}, "", 0},
		{"filter, any case", &pb.ListUrlParams{Filter: text("LATER"), IgnoreCase: &yes}, "http://a.test/Later", 1},
		{"blank filter", &pb.ListUrlParams{Filter: text(" "), Size: 1}, "http://a.test/Later", 3},
		{"start counts what the filter lets through", &pb.ListUrlParams{Filter: text("a.test"), Start: 1},
			"http://a.test/done", 2},
		{"unknown crawl", &pb.ListUrlParams{CrawlID: "c"}, "", 0},
	} {
		stream, err := r.ListURLs(ctx, c.in)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			item, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, item.GetKnown().GetInfo().GetUrl())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: listed are %q; want %s", c.name, got, c.want)
		}
		n := must[*pb.Long](t)(r.CountURLs(ctx,
			&pb.CountUrlParams{Key: c.in.Key, CrawlID: c.in.CrawlID, Filter: c.in.Filter,
				IgnoreCase: c.in.IgnoreCase}))
		if n.Value != c.count {
			t.Errorf("%s: counted are %d; want %d", c.name, n.Value, c.count)
		}
	}
}

func TestQueues(t *testing.T) {
	r := newRig(t, nil)
	ctx := soon(t)
	r.put(discovered("http://a.test/1"), discovered("http://b.test/1"), known("http://c.test/1", 0),
		discovered("http://d.test/1"))
	must[*pb.Empty](t)(r.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "b.test", Time: 1 << 40}))
	r.get(&pb.GetParams{MaxQueues: 1, DelayRequestable: untilEnd})
	for _, c := range []struct {
		name  string
		in    *pb.Pagination
		want  string
		total uint64
	}{
		{"active", &pb.Pagination{}, "a.test d.test", 2},
		{"all", &pb.Pagination{IncludeInactive: true}, "a.test b.test c.test d.test", 4},
		{"page", &pb.Pagination{IncludeInactive: true, Start: 1, Size: 2}, "b.test c.test", 4},
		{"behind the end", &pb.Pagination{Start: 9}, "", 2},
		{"unknown crawl", &pb.Pagination{CrawlID: "c"}, "", 0},
	} {
		got := must[*pb.QueueList](t)(r.ListQueues(ctx, c.in))
		if strings.Join(got.Values, " ") != c.want || got.Total != c.total ||
			int(got.Size) != len(got.Values) || got.Start != c.in.Start {
			t.Errorf("%s: queues are %v; want %s of %d", c.name, got, c.want, c.total)
		}
	}
	stats := must[*pb.Stats](t)(r.GetStats(ctx, &pb.QueueWithinCrawlParams{CrawlID: " "}))
	if stats.Size != 3 || stats.InProcess != 1 || stats.NumberOfQueues != 4 || stats.CrawlID != "DEFAULT" ||
		stats.Counts["completed"] != 1 || stats.Counts["active_queues"] != 3 {
		t.Errorf("stats are %v", stats)
	}
	if s := must[*pb.Stats](t)(r.GetStats(ctx, &pb.QueueWithinCrawlParams{Key: "none"})); s.Size != 0 ||
		s.NumberOfQueues != 0 {
		t.Errorf("stats of an unknown queue are %v; want nothing", s)
	}
	if got := must[*pb.StringList](t)(r.ListCrawls(ctx, &pb.Local{})).Values; !slices.Equal(got,
		[]string{"DEFAULT"}) {
		t.Errorf("crawls are %q", got)
	}
	for key, want := range map[string]uint64{"c.test": 1, "none": 0, "": 0} {
		if n := must[*pb.Long](t)(r.DeleteQueue(ctx, &pb.QueueWithinCrawlParams{Key: key})); n.Value != want {
			t.Errorf("DeleteQueue(%q) = %d; want %d", key, n.Value, want)
		}
	}
	for _, days := range []uint32{1, 106_752, 1<<32 - 1} {
		if n := must[*pb.Long](t)(r.PurgeURLs(ctx, &pb.PurgeUrlParams{Days: days})); n.Value != 0 {
			t.Errorf("%d URLs of today are purged by an age of %d days", n.Value, days)
		}
	}
	if n := must[*pb.Long](t)(r.PurgeURLs(ctx, &pb.PurgeUrlParams{Key: "d.test"})); n.Value != 1 {
		t.Errorf("%d URLs are purged; want 1", n.Value)
	}
	if n := must[*pb.Long](t)(r.DeleteCrawl(ctx, &pb.DeleteCrawlMessage{Value: "DEFAULT"})); n.Value != 2 {
		t.Errorf("%d URLs are deleted with the crawl; want 2", n.Value)
	}
}

func TestControl(t *testing.T) {
	var level string
	r := newRig(t, func(c *frontier.Config) { c.SetLevel = func(l string) { level = l } })
	ctx := soon(t)
	r.put(discovered("http://a.test/1"), discovered("http://a.test/2"))
	must[*pb.Empty](t)(r.SetActive(ctx, &pb.Active{}))
	if got := r.get(&pb.GetParams{}); len(got) != 0 ||
		must[*pb.Boolean](t)(r.GetActive(ctx, &pb.Local{})).State {
		t.Errorf("%d URLs are served while inactive", len(got))
	}
	must[*pb.Empty](t)(r.SetActive(ctx, &pb.Active{State: true}))
	must[*pb.Empty](t)(r.SetDelay(ctx, &pb.QueueDelayParams{}))
	must[*pb.Empty](t)(r.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "a.test", Limit: 1}))
	for want := range 2 {
		if got := r.get(&pb.GetParams{MaxUrlsPerQueue: 1}); len(got) != 1-want {
			t.Errorf("%d URLs are served with %d completed and a limit of 1", len(got), want)
		}
		r.put(known("http://a.test/1", 0))
	}
	must[*pb.Empty](t)(r.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "a.test"}))
	if got := r.get(&pb.GetParams{}); len(got) != 1 {
		t.Errorf("%d URLs are served without a limit; want 1", len(got))
	}
	must[*pb.Empty](t)(r.SetLogLevel(ctx, &pb.LogLevelParams{Package: "crawlercommons",
		Level: pb.LogLevelParams_ERROR}))
	must[*pb.Empty](t)(r.SetLogLevel(ctx, &pb.LogLevelParams{Package: "ROOT", Level: pb.LogLevelParams_WARN}))
	if level != "warn" {
		t.Errorf("log level is %q; want warn", level)
	}
	if got := must[*pb.StringList](t)(r.ListNodes(ctx, &pb.Empty{})).Values; len(got) != 1 {
		t.Errorf("nodes are %q; want this one", got)
	}
	for name, call := range map[string]func() error{
		"limit without a key": func() error { _, err := r.SetCrawlLimit(ctx, &pb.CrawlLimitParams{}); return err },
		"level 9": func() error {
			_, err := r.SetLogLevel(ctx, &pb.LogLevelParams{Level: 9})
			return err
		},
		"long key": func() error {
			_, err := r.SetDelay(ctx, &pb.QueueDelayParams{Key: strings.Repeat("k", 256)})
			return err
		},
		"crawl that no URL can have": func() error {
			_, err := r.SetDelay(ctx, &pb.QueueDelayParams{Key: "k",
				CrawlID: strings.Repeat("c", docindex.MaxExtra+1)})
			return err
		},
	} {
		if err := call(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v; want INVALID_ARGUMENT", name, err)
		}
	}
}

func TestToken(t *testing.T) {
	r := newRig(t, func(c *frontier.Config) { c.Settings.Token = "secret" })
	for token, want := range map[string]codes.Code{"": codes.Unauthenticated,
		"Bearer wrong": codes.Unauthenticated, "secret": codes.Unauthenticated, "Bearer secret": codes.OK,
		"bearer secret": codes.OK} {
		ctx := metadata.AppendToOutgoingContext(soon(t), "authorization", token)
		if _, err := r.GetActive(ctx, &pb.Local{}); status.Code(err) != want {
			t.Errorf("a call with %q: %v; want %v", token, err, want)
		}
		stream, err := r.GetURLs(ctx, &pb.GetParams{})
		if err == nil {
			_, err = stream.Recv()
		}
		if err != io.EOF && status.Code(err) != want {
			t.Errorf("a stream with %q: %v; want %v", token, err, want)
		}
	}
	if _, err := grpc_health_v1.NewHealthClient(r.conn).Check(soon(t),
		&grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Errorf("health without a token: %v", err)
	}
}

func TestHealthAndReflection(t *testing.T) {
	r := newRig(t, nil)
	h, err := grpc_health_v1.NewHealthClient(r.conn).Check(soon(t),
		&grpc_health_v1.HealthCheckRequest{Service: "urlfrontier.URLFrontier"})
	if err != nil || h.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health is %v, %v", h, err)
	}
	stream := must[grpc_reflection_v1.ServerReflection_ServerReflectionInfoClient](t)(
		grpc_reflection_v1.NewServerReflectionClient(r.conn).ServerReflectionInfo(soon(t)))
	if err := stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: "urlfrontier.URLFrontier",
		},
	}); err != nil {
		t.Fatal(err)
	}
	if answer, err := stream.Recv(); err != nil ||
		len(answer.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("reflection answers %v, %v; want the schema", answer, err)
	}
}

func TestDeadline(t *testing.T) {
	r := newRig(t, nil)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := r.DeleteCrawl(ctx, &pb.DeleteCrawlMessage{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a call after its deadline: %v; want DEADLINE_EXCEEDED", err)
	}
}
