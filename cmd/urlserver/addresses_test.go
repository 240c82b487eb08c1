package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "urlserver/api/urlfrontier"
)

// frontierClient is a URL Frontier client of a daemon, over TCP.
type frontierClient struct {
	t *testing.T
	pb.URLFrontierClient
}

func dialFrontier(t *testing.T, d *daemon) *frontierClient {
	t.Helper()
	conn, err := grpc.NewClient(d.frontier, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &frontierClient{t, pb.NewURLFrontierClient(conn)}
}

// put sends items and waits for their acknowledgements.
func (c *frontierClient) put(items ...*pb.URLItem) {
	c.t.Helper()
	stream, err := c.PutURLs(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, item := range items {
		if err := stream.Send(item); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		c.t.Fatal(err)
	}
	for {
		if ack, err := stream.Recv(); errors.Is(err, io.EOF) {
			return
		} else if err != nil || ack.Status == pb.AckMessage_FAIL {
			c.t.Fatalf("acknowledged %v, %v", ack, err)
		}
	}
}

func (c *frontierClient) discover(urls ...string) {
	c.t.Helper()
	var items []*pb.URLItem
	for _, url := range urls {
		items = append(items, &pb.URLItem{Item: &pb.URLItem_Discovered{
			Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: url}}}})
	}
	c.put(items...)
}

// ended reports a URL as completed. metadata is name, value, name, value …
func (c *frontierClient) ended(url string, metadata ...string) {
	c.t.Helper()
	info := &pb.URLInfo{Url: url, Metadata: map[string]*pb.StringList{}}
	for i := 0; i+1 < len(metadata); i += 2 {
		info.Metadata[metadata[i]] = &pb.StringList{Values: []string{metadata[i+1]}}
	}
	c.put(&pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info}}})
}

// get returns one URL of each queue that may be served.
func (c *frontierClient) get() (urls []string) {
	c.t.Helper()
	stream, err := c.GetURLs(c.t.Context(), &pb.GetParams{MaxUrlsPerQueue: 1, DelayRequestable: 3600})
	if err != nil {
		c.t.Fatal(err)
	}
	for {
		info, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return urls
		}
		if err != nil {
			c.t.Fatal(err)
		}
		urls = append(urls, info.Url)
	}
}

// next returns the next URL with the time before the call and after the answer.
func (c *frontierClient) next() (url string, asked, answered time.Time) {
	c.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		asked = time.Now()
		switch urls := c.get(); len(urls) {
		case 0:
		case 1:
			return urls[0], asked, time.Now()
		default:
			c.t.Fatalf("%q are served at once; want one URL", urls)
		}
	}
	c.t.Fatal("nothing is served")
	return "", asked, asked
}

const withAddresses = `Req_Host_Per_Sec = 2.0
spider.listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
robots.enabled = false
resolver.servers = [%q]
resolver.allow_networks = ["127.0.0.0/8"]
resolver.min_ttl = "0s"
resolver.family = "ipv4"
frontier.listen = "127.0.0.1:0"
frontier.addresses = true
%s`

// TestFrontierAddresses has two hosts on one address. Their queues keep its gap and never have URLs
// out at the same time. Then one of them moves.
func TestFrontierAddresses(t *testing.T) {
	t.Parallel() // it mostly waits
	var moved atomic.Bool
	names := serveNames(t, func(name string) string {
		if name == "b.test." && moved.Load() {
			return "127.0.0.3"
		}
		return "127.0.0.2"
	})
	d := startDaemon(t, write(t, "urlserver.toml", fmt.Sprintf(withAddresses, names, "")))
	c := dialFrontier(t, d)
	var urls []string
	for i := range 3 {
		urls = append(urls, fmt.Sprintf("http://a.test/%d", i), fmt.Sprintf("http://b.test/%d", i))
	}
	c.discover(urls...)
	const gap = 500 * time.Millisecond
	var last time.Time // when the call that got the last URL began
	seen := map[string]int{}
	for range 4 {
		url, asked, answered := c.next()
		if !last.IsZero() && answered.Sub(last) < gap {
			t.Errorf("%s is served %v after the URL before", url, answered.Sub(last))
		}
		seen[url[:len("http://a.test/")]]++
		last = asked
		for range 5 { // as long as its URL is out, the address is in use
			if more := c.get(); len(more) > 0 {
				t.Fatalf("%q are served while %s is out", more, url)
			}
		}
		if len(seen) == 1 {
			other := map[string]string{"http://a.test/": "b.test", "http://b.test/": "a.test"}
			host := other[url[:len("http://a.test/")]]
			command(t, "", "explain", host, "--at", d.at).want(t, 0, "the address 127.0.0.2", "")
		}
		c.ended(url)
	}
	if len(seen) != 2 {
		t.Errorf("only queues %v had a turn", seen)
	}
	moved.Store(true)
	both := map[string]bool{}
	for end := time.Now().Add(patience); len(both) < 2; {
		for _, url := range c.get() { // none is reported as completed
			both[url[:len("http://a.test/")]] = true
		}
		if time.Now().After(end) {
			t.Fatalf("%v are out; want one of each address", both)
		}
	}
}

// TestFrontierLevels has three hosts that no spider has asked. The API tells their sites, their
// addresses and the shared network as clients keep them.
func TestFrontierLevels(t *testing.T) {
	t.Parallel() // it mostly waits
	names := serveNames(t, func(name string) string {
		if name == "c.test." {
			return "127.0.0.9"
		}
		return "127.0.0.2"
	})
	d := startDaemon(t, write(t, "urlserver.toml", fmt.Sprintf(withAddresses, names, `
[[rules]]
name = "net"
networks = ["127.0.0.9/32"]
shared = true
per_sec = 4
concurrent = 7
site_per_sec = 0.1
`)))
	c := dialFrontier(t, d)
	c.discover("http://a.test/1", "http://b.test/1", "http://c.test/1", "http://c.test/2")
	out := map[string]bool{}
	for end := time.Now().Add(patience); len(out) < 2 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, url := range c.get() {
			out[url[len("http://"):len("http://a.test")]] = true
		}
	}
	waits := map[bool]string{true: "b.test", false: "a.test"}[out["a.test"]]
	levelsOf(t, d, waits, func(site, address *levelView, _ string) bool {
		return site.Name == waits && site.Open == 0 && site.MostOpen == 1 && site.Gap == 0.5 && site.Why == "" &&
			address.Name == "127.0.0.2" && address.Open == 1 && address.MostOpen == 1 && address.Gap == 0.5 &&
			address.NextSend != nil && strings.Contains(address.Why, "address 127.0.0.2")
	})
	levelsOf(t, d, "c.test", func(site, address *levelView, _ string) bool {
		return site.Name == "c.test" && site.Open == 1 && site.Gap == 10 && site.NextSend != nil &&
			address.Name == "net" && address.Open == 1 && address.MostOpen > 0
	})
	c.ended("http://c.test/1")
	levelsOf(t, d, "c.test", func(site, _ *levelView, _ string) bool {
		return site.Open == 0 && strings.Contains(site.Why, "the pace of the site c.test, one request in 10s")
	})
}

// TestFrontierBacksOff reports 503 with Retry-After of one host. Its queue is left alone, and that
// of its neighbour goes on.
func TestFrontierBacksOff(t *testing.T) {
	d := startDaemon(t, settings(t, `frontier.listen = "127.0.0.1:0"`))
	c := dialFrontier(t, d)
	c.discover("http://a.test/1", "http://a.test/2", "http://b.test/1", "http://b.test/2", "http://b.test/3")
	if got := c.get(); len(got) != 2 {
		t.Fatalf("%q are served; want one URL of each host", got)
	}
	c.ended("http://a.test/1", "fetch.statusCode", "503", "protocol.retry-after", "3600")
	c.ended("http://b.test/1", "fetch.statusCode", "200")
	for _, want := range []string{"http://b.test/2", "http://b.test/3"} {
		if url, _, _ := c.next(); url != want {
			t.Fatalf("%s is served; want %s, whose host does not back off", url, want)
		}
		c.ended(want)
	}
	got := command(t, "", "explain", "a.test", "--at", d.at)
	if !strings.Contains(got.out, "Retry-After") {
		t.Errorf("explain a.test: %s", got.out)
	}
	levelsOf(t, d, "a.test", func(site, address *levelView, _ string) bool {
		return site.Name == "a.test" && site.Backoff == 3600 && strings.Contains(site.Why, "Retry-After") &&
			*address == levelView{}
	})
}

// TestFrontierCrawlDelay has a spider learn that a host wants two seconds between two requests.
// Clients keep them, too: robots.txt, the spider's URL and the client's are two gaps.
func TestFrontierCrawlDelay(t *testing.T) {
	t.Parallel() // it mostly waits
	const delay = 2 * time.Second
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "User-agent: *\nCrawl-delay: 2\n")
	}))
	defer web.Close()
	d := startDaemon(t, write(t, "urlserver.toml", `Req_Host_Per_Sec = 1000
spider.listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
resolver.servers = ["127.0.0.1:9"]
resolver.allow_networks = ["127.0.0.0/8"]
frontier.listen = "127.0.0.1:0"
`))
	c, sp := dialFrontier(t, d), dialSpider(t, d.spiders)
	began := time.Now()
	c.discover(web.URL + "/1")
	sp.done(sp.next()[0])
	var now struct {
		Outcomes map[string]int
		Spiders  []any
	}
	wait := func(until func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !until(); time.Sleep(10 * time.Millisecond) {
			got := command(t, "", "status", "--json", "--at", d.at)
			if err := json.Unmarshal([]byte(got.out), &now); err != nil || time.Now().After(end) {
				t.Fatalf("%v; status %s", err, got.out)
			}
		}
	}
	wait(func() bool { return now.Outcomes["done"] == 1 })
	sp.conn.Close()
	wait(func() bool { return len(now.Spiders) == 0 }) // else its daemon may still take the URLs for it
	c.discover(web.URL+"/2", "http://b.test/1")
	var served []string
	for end := time.Now().Add(patience); len(served) < 2 && time.Now().Before(end); {
		served = append(served, c.get()...)
	}
	if took := time.Since(began); len(served) != 2 || served[0] != "http://b.test/1" || took < 2*delay {
		t.Errorf("%q are served within %v; want the neighbour first, and the other after %v", served, took, 2*delay)
	}
}
