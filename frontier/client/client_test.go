package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
	"urlserver/frontier"
	"urlserver/frontier/client"
)

// serve serves a store on a real socket, and returns a connection to it and what ends both.
func serve(store docindex.Store, token string, options ...grpc.DialOption) (conn *grpc.ClientConn,
	end func(), err error) {
	settings := configs.Default().Frontier
	settings.Token = configs.Secret(token)
	server, err := frontier.New(frontier.Config{Settings: settings, Store: store, Log: zerolog.Nop()})
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	conn, err = grpc.NewClient(l.Addr().String(),
		append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	return conn, func() { conn.Close(); cancel(); <-ended }, err
}

func start(t *testing.T, store docindex.Store, token string, options ...grpc.DialOption) *client.Client {
	t.Helper()
	conn, end, err := serve(store, token, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return client.New(conn)
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestCrawl puts many URLs, some twice and some bad, gets all, and reports them.
func TestCrawl(t *testing.T) {
	store := memory.New()
	c := start(t, store, "")
	ctx := soon(t)
	const n = 5000
	statuses := map[pb.AckMessage_Status]int{}
	count := func(item *pb.URLItem, s pb.AckMessage_Status) {
		statuses[s]++
		if url := item.GetDiscovered().GetInfo().GetUrl(); (url == "") != (s == pb.AckMessage_SKIPPED) &&
			!strings.HasSuffix(url, "again") {
			t.Errorf("%q is answered %v", url, s)
		}
	}
	p, err := c.Put(ctx, count)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		url := fmt.Sprintf("http://h%d.test/%d", i%50, i)
		switch i % 100 {
		case 7:
			url = ""
		case 8, 9:
			url = "http://h.test/again"
		}
		if err := p.Send(client.Discovered(&pb.URLInfo{Url: url})); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil || len(p.Unanswered()) > 0 {
		t.Fatalf("Close: %v, %d unanswered", err, len(p.Unanswered()))
	}
	const fresh = n*97/100 + 1
	if statuses[pb.AckMessage_OK] != fresh || statuses[pb.AckMessage_SKIPPED] != n-fresh {
		t.Errorf("answers are %v; want %d OK and %d SKIPPED", statuses, fresh, n-fresh)
	}
	done, err := c.Put(ctx, func(*pb.URLItem, pb.AckMessage_Status) {})
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for info, err := range c.Get(ctx, &pb.GetParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		got++
		if err := done.Send(client.Known(info, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := done.Close(); err != nil {
		t.Fatal(err)
	}
	if count := indextest.Count(t, store, nil); got != fresh || count.Completed != fresh {
		t.Errorf("got %d, the store has %+v; want %d completed", got, count, fresh)
	}
}

func TestGetEnds(t *testing.T) {
	c := start(t, memory.New(), "")
	p, err := c.Put(soon(t), func(*pb.URLItem, pb.AckMessage_Status) {})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := p.Send(client.Discovered(&pb.URLInfo{Url: fmt.Sprintf("http://h%d.test/",
			i)})); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, err := range c.Get(soon(t), &pb.GetParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got++; got == 3 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for info, err := range c.Get(ctx, &pb.GetParams{}) {
		if info != nil || status.Code(err) != codes.Canceled {
			t.Errorf("Get after the end is %v, %v; want CANCELLED", info, err)
		}
		got++
	}
	if got != 4 {
		t.Errorf("%d rounds; want 3 URLs and one error", got)
	}
}

func TestToken(t *testing.T) {
	for token, want := range map[client.Token]codes.Code{"secret": codes.OK, "wrong": codes.Unauthenticated} {
		c := start(t, memory.New(), "secret", grpc.WithPerRPCCredentials(token))
		p, err := c.Put(soon(t), func(*pb.URLItem, pb.AckMessage_Status) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); status.Code(err) != want {
			t.Errorf("token %s: %v; want %v", token, err, want)
		}
	}
}

// TestLarge sends what is larger than the service takes: the error says so, and what has no answer
// is told.
func TestLarge(t *testing.T) {
	c := start(t, memory.New(), "")
	p, err := c.Put(soon(t), func(*pb.URLItem, pb.AckMessage_Status) {})
	if err != nil {
		t.Fatal(err)
	}
	large := client.Discovered(&pb.URLInfo{Url: strings.Repeat("x", configs.Default().Frontier.MaxMessage+1)})
	if err = p.Send(large); err == nil {
		err = p.Close()
	} else {
		_ = p.Close() // says the same
	}
	if status.Code(errors.Unwrap(err)) != codes.ResourceExhausted &&
		status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large item: %v; want RESOURCE_EXHAUSTED", err)
	}
	if left := p.Unanswered(); len(left) != 1 || left[0] != large {
		t.Errorf("%d items are unanswered; want the large one", len(left))
	}
	if err := p.Send(client.Discovered(&pb.URLInfo{Url: "http://a.test/"})); err == nil ||
		errors.Is(err, io.EOF) {
		t.Errorf("Send on a broken stream: %v; want why it broke", err)
	}
}
