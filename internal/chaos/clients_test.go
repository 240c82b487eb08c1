package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "urlserver/api/urlfrontier"
	"urlserver/frontier/client"
	"urlserver/internal/testkit/redistest"
)

const (
	pageTime    = 5 * time.Second // of the trouble, for each page of a host
	clientLease = 20              // s; what a client does not report is given out again
	calls       = 2               // of a daemon's clients at a time
	callTime    = 5 * time.Second // for each of them

	mostOfClients = 300 // hosts
)

// TestClients: URL Frontier clients, with frontier.addresses, and spiders of four daemons crawl one index
// in Redis, while daemons and the Redis of the reservation have trouble. The oracle judges sites,
// addresses and the shared network. Hosts have one address: clients look up names themselves.
func TestClients(t *testing.T) {
	wantsAll(t)
	if *hosts > mostOfClients {
		t.Skipf("%d hosts are more than its clients get through; -args -all -hosts %d -time 15s runs it", *hosts,
			mostOfClients)
	}
	redistest.Need(t)
	r := newRig(t)
	r.stuck.tell = func(string) {} // there is nothing more to be fetched at some hosts
	index := redistest.Start(t)
	shared := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	r.docindex = fmt.Sprintf("kind = \"redis\"\naddrs = [%q]", index.Addr())
	r.reservation = func(n int) string {
		return fmt.Sprintf("kind = \"redis\"\naddrs = [%q]\n[frontier]\nlisten = %q\naddresses = true",
			shared.Addr(), r.frontier(n))
	}
	r.stores = []store{{
		what: "Redis killed", every: 3 * r.lease, away: r.lease / 4, fail: shared.Kill,
		mend: func() {
			if !shared.Restart() {
				t.Fatalf("redis-server does not start again: %s", shared.Tail())
			}
		},
	}}
	r.spidersEach = 0
	r.launch()
	r.comeAndGo(r.newSpider(0, 0))
	urls := r.putPages()
	ctx, end := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for n := range daemonCount {
		for range calls {
			clients.Go(func() { r.clientOf(ctx, n) })
		}
	}
	r.beset()
	r.await(r.unfinished)
	end()
	clients.Wait()
	if n := r.unfinished(); n > 0 {
		t.Errorf("%d URLs are not completed", n)
	}
	missed := 0
	for _, url := range urls {
		if _, seen := r.oracle.fetched(url); !seen {
			missed++
		}
	}
	all, _ := r.oracle.fetched("")
	t.Logf("%v; %d URLs, %d requests, %d by clients", r.happened, len(urls), all, r.byClients.Load())
	if n := r.byClients.Load(); n < int64(len(urls)/10) || int(n) > all*9/10 {
		t.Errorf("%d of %d requests are by clients; want some by both", n, all)
	}
	if missed > 0 {
		t.Errorf("no web server has seen a request for %d of the URLs", missed)
	}
	r.judgePoliteness(2 * len(r.daemons)) // its spiders, and its clients
}

// comeAndGo runs a spider for a lease, and not for the next one. While it is there, its daemon takes all
// hosts for it that clients do not have.
func (r *rig) comeAndGo(s *process) {
	s.start()
	r.t.Cleanup(s.kill)
	r.schedule.after(r.some(r.lease), func() {
		s.kill()
		r.schedule.after(r.some(r.lease), func() { r.comeAndGo(s) })
	})
}

// putPages puts the pages of all hosts that have one address.
func (r *rig) putPages() (urls []string) {
	r.t.Helper()
	var text strings.Builder
	for page := range int(*during/pageTime) + 3 {
		for host, name := range r.world.hosts {
			if !r.world.several(host) {
				fmt.Fprintf(&text, "http://%s:%d/%d\n", name, webPort, page)
				urls = append(urls, fmt.Sprintf("http://%s/%d", name, page))
			}
		}
	}
	redistest.Eventually(r.t, "a daemon that takes the URLs", func() bool {
		resp, err := http.Post("http://"+r.explains(0)+"/docindex/urls", "text/plain", strings.NewReader(text.String()))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return urls
}

// unfinished returns how many URLs are not completed, as a daemon that works says; 1: none does.
func (r *rig) unfinished() int {
	c := http.Client{Timeout: time.Second}
	for n, d := range r.daemons {
		if d.frozen || !d.runs() {
			continue
		}
		resp, err := c.Get("http://" + r.explains(n) + "/api/status")
		if err != nil {
			continue
		}
		var status struct {
			Index struct {
				Scheduled int
				InTransit int `json:"in_transit"`
			}
		}
		err = json.NewDecoder(resp.Body).Decode(&status)
		resp.Body.Close()
		if err == nil {
			return status.Index.Scheduled + status.Index.InTransit
		}
	}
	return 1 // nobody says
}

// clientOf gets URLs of a daemon and fetches them until ctx ends.
func (r *rig) clientOf(ctx context.Context, n int) {
	conn, err := grpc.NewClient(r.frontier(n), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second}))
	if err != nil {
		r.t.Error(err)
		return
	}
	defer conn.Close()
	var fetches sync.WaitGroup
	defer fetches.Wait()
	for c := client.New(conn); ctx.Err() == nil; time.Sleep(lookInterval / 5) { // until the next call
		call, end := context.WithTimeout(ctx, callTime)
		for info, err := range c.Get(call, &pb.GetParams{MaxUrlsPerQueue: 1, MaxQueues: 50,
			DelayRequestable: clientLease}) {
			if err != nil { // the daemon is away
				break
			}
			url := withoutPort(info.Url)
			r.oracle.mu.Lock()
			r.oracle.lines[url] = time.Now()
			r.oracle.saw(fmt.Sprintf("client of daemon%d gets", n), url)
			r.oracle.mu.Unlock()
			fetches.Go(func() { r.fetch(ctx, n, pb.NewURLFrontierClient(conn), info) })
		}
		end()
	}
}

// fetch fetches a URL for a client, and reports it.
func (r *rig) fetch(ctx context.Context, n int, to pb.URLFrontierClient, info *pb.URLInfo) {
	host := hostOf(withoutPort(info.Url))
	number, _ := r.world.number(host)
	addr := netip.AddrPortFrom(r.world.at(number, 0), webPort).String()
	web := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		}}}
	req, err := http.NewRequest(http.MethodGet, info.Url, nil)
	if err != nil {
		r.t.Error(err)
		return
	}
	req.Header.Set("User-Agent", fmt.Sprintf("client%d", n))
	r.byClients.Add(1)
	resp, err := web.Do(req)
	if err != nil {
		r.t.Errorf("%s: %v", info.Url, err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	report := &pb.URLInfo{Url: info.Url, Key: info.Key, Metadata: map[string]*pb.StringList{
		"status": {Values: []string{fmt.Sprint(resp.StatusCode)}}}}
	wait := resp.Header.Get("Retry-After")
	if wait != "" {
		report.Metadata["retry-after"] = &pb.StringList{Values: []string{wait}}
	}
	if err := reported(ctx, to, client.Known(report, 0)); err == nil && wait != "" {
		r.oracle.mu.Lock()
		defer r.oracle.mu.Unlock()
		r.oracle.refused++
		r.oracle.paces[host].retry = time.Now().Add(retryAfter)
	}
}

// reported reports one URL. If that fails, the URL is given out again when its lease ends.
func reported(ctx context.Context, to pb.URLFrontierClient, item *pb.URLItem) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	stream, err := to.PutURLs(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(item); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	ack, err := stream.Recv()
	if err == nil && ack.Status != pb.AckMessage_OK {
		err = fmt.Errorf("acknowledged %v", ack)
	}
	return err
}
