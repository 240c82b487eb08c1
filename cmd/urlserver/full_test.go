package main

import (
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

// TestFullRedis: while Redis has no memory, gRPC calls fail with RESOURCE_EXHAUSTED, items are
// acknowledged as FAIL, and HTTP answers 507. When it has memory again, all goes on, and what was
// refused is not there.
func TestFullRedis(t *testing.T) {
	redis := redistest.Start(t)
	d := startDaemon(t,
		settings(t, fmt.Sprintf(
			"frontier.listen = \"127.0.0.1:0\"\n[docindex]\nkind = \"redis\"\naddrs = [%q]\n", redis.Addr())))
	conn, err := grpc.NewClient(d.frontier, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client, ctx := pb.NewURLFrontierClient(conn), t.Context()
	put := func(url string) pb.AckMessage_Status {
		t.Helper()
		stream, err := client.PutURLs(ctx)
		if err == nil {
			err = stream.Send(
				&pb.URLItem{Item: &pb.URLItem_Discovered{
					Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: url}},
				}})
		}
		if err != nil {
			t.Fatal(err)
		}
		ack, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("after the acknowledgement: %v", err)
		}
		return ack.Status
	}
	get := func() (urls []string, err error) {
		stream, err := client.GetURLs(ctx, &pb.GetParams{MaxQueues: 10})
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
	post := func(url string) (int, string) {
		t.Helper()
		resp, err := http.Post(d.at+"/docindex/urls", "application/x-ndjson",
			strings.NewReader(fmt.Sprintf("{\"url\":%q}\n", url)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if is := put("http://a.test/1"); is != pb.AckMessage_OK {
		t.Fatalf("with memory: %v", is)
	}

	redis.CLI("CONFIG", "SET", "maxmemory", "1")
	if is := put("http://b.test/1"); is != pb.AckMessage_FAIL {
		t.Errorf("an item of PutURLs without memory: %v; want FAIL", is)
	}
	if code, text := post("http://c.test/1"); code != http.StatusInsufficientStorage ||
		!strings.Contains(text, "maxmemory") {
		t.Errorf("HTTP without memory: %d %s; want 507, and what to do", code, text)
	}
	queue := &pb.QueueWithinCrawlParams{Key: "a.test"}
	for name, call := range map[string]func() error{
		"GetURLs": func() error { _, err := get(); return err },
		"SetDelay": func() error {
			_, err := client.SetDelay(ctx, &pb.QueueDelayParams{DelayRequestable: 5})
			return err
		},
		"BlockQueueUntil": func() error {
			_, err := client.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "a.test", Time: 1 << 40})
			return err
		},
		"SetCrawlLimit": func() error {
			_, err := client.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "a.test", Limit: 1})
			return err
		},
		"SetActive": func() error { _, err := client.SetActive(ctx, &pb.Active{State: false}); return err },
		"GetStats": func() error {
			_, err := client.GetStats(ctx, &pb.QueueWithinCrawlParams{})
			return err
		},
		"GetStats, queue": func() error { _, err := client.GetStats(ctx, queue); return err },
	} {
		if err := call(); grpcstatus.Code(err) != codes.ResourceExhausted ||
			!strings.Contains(err.Error(), "maxmemory") {
			t.Errorf("%s without memory: %v; want RESOURCE_EXHAUSTED, and what to do", name, err)
		}
	}

	redis.CLI("CONFIG", "SET", "maxmemory", "0")
	stats, err := client.GetStats(ctx, &pb.QueueWithinCrawlParams{})
	if err != nil || stats.Size != 1 || stats.Counts["completed"] != 0 {
		t.Errorf("with memory again: %v, %v; want the one URL that was acknowledged", stats, err)
	}
	if code, text := post("http://c.test/1"); code != http.StatusOK || !strings.Contains(text, `"new":1`) {
		t.Errorf("HTTP with memory again: %d %s", code, text)
	}
	if is := put("http://b.test/1"); is != pb.AckMessage_OK {
		t.Errorf("PutURLs with memory again: %v", is)
	}
	if urls, err := get(); err != nil || len(urls) != 3 {
		t.Errorf("GetURLs with memory again: %q, %v; want all three", urls, err)
	}
}
