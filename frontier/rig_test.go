package frontier_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	pb "urlserver/api/urlfrontier"
	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/frontier"
)

// rig is a service with a client.
type rig struct {
	t      *testing.T
	store  docindex.Store
	server *frontier.Server
	conn   *grpc.ClientConn
	pb.URLFrontierClient
	stop func() // ends the service and waits for it
}

func newRig(t *testing.T, change func(*frontier.Config)) *rig {
	t.Helper()
	cfg := frontier.Config{Settings: configs.Default().Frontier, Store: memory.New(), Log: zerolog.Nop()}
	if change != nil {
		change(&cfg)
	}
	server, err := frontier.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	conn, err := grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: cfg.Store.(docindex.Store), server: server, conn: conn,
		URLFrontierClient: pb.NewURLFrontierClient(conn)}
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		r.stop()
	})
	return r
}

// discovered is an item for a URL that was found.
func discovered(url string) *pb.URLItem { return discoveredInfo(&pb.URLInfo{Url: url}) }

func discoveredInfo(info *pb.URLInfo) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: info}}}
}

// known is an item with news of a URL; date 0 completes it.
func known(url string, date uint64) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: &pb.URLInfo{Url: url},
		RefetchableFromDate: date}}}
}

// put sends items on one stream and returns the acknowledgements by their IDs.
func (r *rig) put(items ...*pb.URLItem) map[string]pb.AckMessage_Status {
	r.t.Helper()
	stream, err := r.PutURLs(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, item := range items {
		if err := stream.Send(item); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		r.t.Fatal(err)
	}
	acks := map[string]pb.AckMessage_Status{}
	n := 0
	for ; ; n++ {
		ack, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.t.Fatalf("PutURLs after %d acknowledgements: %v", n, err)
		}
		acks[ack.ID] = ack.Status
	}
	if n != len(items) {
		r.t.Fatalf("%d acknowledgements of %d items", n, len(items))
	}
	return acks
}

// get calls GetURLs.
func (r *rig) get(in *pb.GetParams) (all []*pb.URLInfo) {
	r.t.Helper()
	stream, err := r.GetURLs(r.t.Context(), in)
	if err != nil {
		r.t.Fatal(err)
	}
	for {
		info, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			r.t.Fatalf("GetURLs: %v", err)
		}
		all = append(all, info)
	}
}

// must fails the test where a call failed.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// soon is a context for what must not take long.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
