package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/internal/testkit/redistest"
)

// fullStore is a daemon whose index is in a Redis without memory now and then, with a client of its
// URL Frontier service.
type fullStore struct {
	t      *testing.T
	d      *daemon
	client pb.URLFrontierClient
}

func newFullStore(t *testing.T, redis *redistest.Server) fullStore {
	t.Helper()
	d := startDaemon(t, settings(t, fmt.Sprintf(
		"frontier.listen = \"127.0.0.1:0\"\n[docindex]\nkind = \"redis\"\naddrs = [%q]\n", redis.Addr())))
	conn, err := grpc.NewClient(d.frontier, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return fullStore{t, d, pb.NewURLFrontierClient(conn)}
}

// put puts a URL by PutURLs.
func (f fullStore) put(url string) pb.AckMessage_Status {
	f.t.Helper()
	stream, err := f.client.PutURLs(f.t.Context())
	if err == nil {
		err = stream.Send(&pb.URLItem{Item: &pb.URLItem_Discovered{
			Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: url}},
		}})
	}
	if err != nil {
		f.t.Fatal(err)
	}
	ack, err := stream.Recv()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		f.t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		f.t.Errorf("after the acknowledgement: %v", err)
	}
	return ack.Status
}

// get gets all URLs by GetURLs.
func (f fullStore) get() (urls []string, err error) {
	stream, err := f.client.GetURLs(f.t.Context(), &pb.GetParams{MaxQueues: 10})
	for err == nil {
		var info *pb.URLInfo
		if info, err = stream.Recv(); err == nil {
			urls = append(urls, info.Url)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return urls, err
}

// post puts a URL by HTTP.
func (f fullStore) post(url string) (int, string) {
	f.t.Helper()
	resp, err := http.Post(f.d.at+"/docindex/urls", "application/x-ndjson",
		strings.NewReader(fmt.Sprintf("{\"url\":%q}\n", url)))
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// calls returns the calls that fail without memory, by name.
func (f fullStore) calls(ctx context.Context) map[string]func() error {
	queue := &pb.QueueWithinCrawlParams{Key: "a.test"}
	return map[string]func() error{
		"GetURLs": func() error { _, err := f.get(); return err },
		"SetDelay": func() error {
			_, err := f.client.SetDelay(ctx, &pb.QueueDelayParams{DelayRequestable: 5})
			return err
		},
		"BlockQueueUntil": func() error {
			_, err := f.client.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "a.test", Time: 1 << 40})
			return err
		},
		"SetCrawlLimit": func() error {
			_, err := f.client.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "a.test", Limit: 1})
			return err
		},
		"SetActive": func() error { _, err := f.client.SetActive(ctx, &pb.Active{State: false}); return err },
		"GetStats": func() error {
			_, err := f.client.GetStats(ctx, &pb.QueueWithinCrawlParams{})
			return err
		},
		"GetStats, queue": func() error { _, err := f.client.GetStats(ctx, queue); return err },
	}
}

// TestFullRedis: while Redis has no memory, gRPC calls fail with RESOURCE_EXHAUSTED, items are
// acknowledged as FAIL, and HTTP answers 507. When it has memory again, all calls succeed, and
// nothing that was refused is stored.
func TestFullRedis(t *testing.T) {
	redis := redistest.Start(t)
	f, ctx := newFullStore(t, redis), t.Context()
	if is := f.put("http://a.test/1"); is != pb.AckMessage_OK {
		t.Fatalf("with memory: %v", is)
	}

	redis.CLI("CONFIG", "SET", "maxmemory", "1")
	if is := f.put("http://b.test/1"); is != pb.AckMessage_FAIL {
		t.Errorf("an item of PutURLs without memory: %v; want FAIL", is)
	}
	if code, text := f.post("http://c.test/1"); code != http.StatusInsufficientStorage ||
		!strings.Contains(text, "maxmemory") {
		t.Errorf("HTTP without memory: %d %s; want 507, and what to do", code, text)
	}
	for name, call := range f.calls(ctx) {
		if err := call(); grpcstatus.Code(err) != codes.ResourceExhausted ||
			!strings.Contains(err.Error(), "maxmemory") {
			t.Errorf("%s without memory: %v; want RESOURCE_EXHAUSTED, and what to do", name, err)
		}
	}

	redis.CLI("CONFIG", "SET", "maxmemory", "0")
	stats, err := f.client.GetStats(ctx, &pb.QueueWithinCrawlParams{})
	if err != nil || stats.Size != 1 || stats.Counts["completed"] != 0 {
		t.Errorf("with memory again: %v, %v; want the one URL that was acknowledged", stats, err)
	}
	if code, text := f.post("http://c.test/1"); code != http.StatusOK || !strings.Contains(text, `"new":1`) {
		t.Errorf("HTTP with memory again: %d %s", code, text)
	}
	if is := f.put("http://b.test/1"); is != pb.AckMessage_OK {
		t.Errorf("PutURLs with memory again: %v", is)
	}
	if urls, err := f.get(); err != nil || len(urls) != 3 {
		t.Errorf("GetURLs with memory again: %q, %v; want all three", urls, err)
	}
}
