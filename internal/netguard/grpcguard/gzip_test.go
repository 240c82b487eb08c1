package grpcguard_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"urlserver/internal/testkit/netguardtest"
)

// packings is a stats.Handler that says of each answer how it is packed.
type packings chan string

func (packings) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (packings) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (packings) HandleConn(context.Context, stats.ConnStats)                       {}

func (p packings) HandleRPC(_ context.Context, s stats.RPCStats) {
	if h, ok := s.(*stats.InHeader); ok {
		p <- h.Compression
	}
}

// TestClientsMayPack: a client that packs its calls with gzip is served, and its answers are plain.
func TestClientsMayPack(t *testing.T) {
	bounded(t, func(t *testing.T, l *netguardtest.Pipes) {
		answers := make(packings, 10)
		conn, err := grpc.NewClient("passthrough:///test", grpc.WithStatsHandler(answers),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.UseCompressor("gzip")),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return l.Dial(), nil }))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		health := grpc_health_v1.NewHealthClient(conn)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if _, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
			t.Error("a call:", err)
		}
		watch, err := health.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
		if err == nil {
			_, err = watch.Recv()
		}
		if err != nil {
			t.Error("a stream:", err)
		}
		synctest.Wait()
		if len(answers) != 2 {
			t.Fatalf("%d answers; want 2", len(answers))
		}
		for range 2 {
			if how := <-answers; how != encoding.Identity {
				t.Errorf("an answer is packed with %q; want it plain", how)
			}
		}
	})
}

// TestPackedMessagesAreBounded: the largest size of a message holds for the unpacked one, too. A message
// that is packed further than lists of URLs are is refused, and the error says so.
func TestPackedMessagesAreBounded(t *testing.T) {
	client := dial(t, guarded(t), "right")
	var urls []byte
	for n := 0; len(urls) <= 4*mega; n++ {
		urls = fmt.Appendf(urls, "https://www.shop%d.example/products/%d.html\n", n%100, n)
	}
	zeros := make([]byte, 64*mega)
	for _, c := range []struct {
		message []byte
		want    codes.Code
		says    string
	}{
		{urls[:4*mega-100], codes.OK, ""},
		{urls[:4*mega+1], codes.ResourceExhausted, "larger than max"},
		{zeros[:64<<10], codes.OK, ""},
		{zeros[:128<<10], codes.Internal, "send it without compression"},
		{zeros[:4*mega-100], codes.Internal, "send it without compression"},
		{zeros, codes.Internal, "send it without compression"},
	} {
		err := client.Invoke(t.Context(), "/a.Service/Call", &wrapperspb.BytesValue{Value: c.message},
			&wrapperspb.BytesValue{}, grpc.UseCompressor("gzip"))
		if status.Code(err) != c.want || !strings.Contains(status.Convert(err).Message(), c.says) {
			t.Errorf("a packed message of %d bytes: %v; want %v that says %q", len(c.message), err, c.want, c.says)
		}
	}
}
