package grpcclient_test

import (
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"urlserver/reservation/grpcclient"
)

// If a service echoes the token in an error, the token is not in the client's error.
func TestErrorsHideTheToken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		header, _ := metadata.FromIncomingContext(stream.Context())
		return status.Errorf(codes.Unavailable, "who is %v?", header.Get("authorization"))
	}))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	s, err := grpcclient.New(grpcclient.Config{Addrs: []string{l.Addr().String()}, Token: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Stats(t.Context()); err == nil || !strings.Contains(err.Error(), "who is [Bearer ***]?") {
		t.Errorf("%v; want the error without the token", err)
	}
}
