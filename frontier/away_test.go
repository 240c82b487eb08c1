package frontier_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/docindex/redis"
	"urlserver/frontier"
)

// TestAway asks a service whose store is a Redis that is not there: each answer is UNAVAILABLE, and
// no count is 0.
func TestAway(t *testing.T) {
	store := redis.New(redis.Config{Addrs: []string{"127.0.0.1:1"}, Lease: time.Minute, Janitor: time.Minute})
	t.Cleanup(func() { store.Close() })
	r := newRig(t, func(c *frontier.Config) { c.Store = store })
	ctx := soon(t)
	filter := "x"
	for name, call := range map[string]func() error{
		"GetStats": func() error {
			_, err := r.GetStats(ctx, &pb.QueueWithinCrawlParams{})
			return err
		},
		"GetStats of a queue": func() error {
			_, err := r.GetStats(ctx, &pb.QueueWithinCrawlParams{Key: "a.test"})
			return err
		},
		"CountURLs": func() error { _, err := r.CountURLs(ctx, &pb.CountUrlParams{}); return err },
		"CountURLs by a filter": func() error {
			_, err := r.CountURLs(ctx, &pb.CountUrlParams{Filter: &filter})
			return err
		},
		"ListCrawls": func() error { _, err := r.ListCrawls(ctx, &pb.Local{}); return err },
		"ListQueues": func() error { _, err := r.ListQueues(ctx, &pb.Pagination{}); return err },
		"GetActive":  func() error { _, err := r.GetActive(ctx, &pb.Local{}); return err },
		"GetURLStatus": func() error {
			_, err := r.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://a.test/"})
			return err
		},
		"DeleteCrawl": func() error { _, err := r.DeleteCrawl(ctx, &pb.DeleteCrawlMessage{}); return err },
		"GetURLs": func() error {
			stream, err := r.GetURLs(ctx, &pb.GetParams{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	} {
		if err := call(); status.Code(err) != codes.Unavailable ||
			!strings.Contains(err.Error(), "is it running") {
			t.Errorf("%s: %v; want UNAVAILABLE, and what to look at", name, err)
		}
	}
	for name := range gathered(t, r) {
		if strings.HasPrefix(name, "urlserver_frontier_urls") ||
			strings.HasPrefix(name, "urlserver_frontier_queues") {
			t.Errorf("the metric %s is there, though nothing was counted", name)
		}
	}
}

// TestPutMetrics counts calls and items of both ways to put.
func TestPutMetrics(t *testing.T) {
	r := newRig(t, nil)
	long := "http://a.test/" + strings.Repeat("x", 9000)
	r.put(discovered("http://a.test/1"), discovered("http://a.test/1"), discovered(long), discovered(""))
	r.put()
	batches := must[interface {
		Send(*pb.DiscoveredBatch) error
		Recv() (*pb.BatchAck, error)
		CloseSend() error
	}](t)(r.PutDiscovered(soon(t)))
	if err := batches.Send(&pb.DiscoveredBatch{Items: []*pb.URLInfo{{Url: long},
		{Url: "http://a.test/2"}}}); err != nil {
		t.Fatal(err)
	}
	must[*pb.BatchAck](t)(batches.Recv())
	if err := batches.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := batches.Recv(); err != io.EOF {
		t.Errorf("the end of the stream is %v", err)
	}
	got := gathered(t, r)
	for name, want := range map[string]float64{
		"frontier_putURLs_calls_total":       2,
		"frontier_putDiscovered_calls_total": 1,
		"frontier_putURLs_total":             6,
		"frontier_putURLs_ignored_total":     1,
		"urlserver_frontier_failed_total":    2,
		"urlserver_frontier_malformed_total": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v; want %v", name, got[name], want)
		}
	}
}

// TestBlockNoQueue blocks without a key: there is no such queue, and nothing is done, as in the
// Java service.
func TestBlockNoQueue(t *testing.T) {
	r := newRig(t, nil)
	r.put(discovered("http://a.test/1"))
	must[*pb.Empty](t)(r.BlockQueueUntil(soon(t), &pb.BlockQueueParams{Time: 1 << 40}))
	if got := r.get(&pb.GetParams{}); len(got) != 1 {
		t.Errorf("got %v; want the URL, since nothing is blocked", got)
	}
	if err := r.store.Settings(t.Context(), func(s *docindex.Setting) bool {
		t.Errorf("%+v is set", *s)
		return true
	}); err != nil {
		t.Error(err)
	}
}

// gathered are the counters and gauges of a service that have no labels, or one value of them each.
func gathered(t *testing.T, r *rig) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r.server)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			all[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}
