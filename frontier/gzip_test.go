package frontier_test

import (
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"

	pb "urlserver/api/urlfrontier"
)

// TestPackedCalls: a client that packs its messages with gzip puts and gets URLs.
func TestPackedCalls(t *testing.T) {
	r, packs := newRig(t, nil), grpc.UseCompressor("gzip")
	stream, err := r.PutURLs(soon(t), packs)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"http://a.test/", "http://b.test/", "http://c.test/"}
	for _, url := range want {
		if err := stream.Send(discovered(url)); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for range want {
		if ack, err := stream.Recv(); err != nil || ack.Status != pb.AckMessage_OK {
			t.Fatalf("acknowledgement %v, %v; want OK", ack, err)
		}
	}
	urls, err := r.GetURLs(soon(t), &pb.GetParams{}, packs)
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for ; ; got++ {
		if _, err := urls.Recv(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if got != len(want) {
		t.Errorf("GetURLs gave %d URLs; want %d", got, len(want))
	}
}
