package grpcclient_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"urlserver/reservation"
	"urlserver/reservation/grpcclient"
)

// client returns a client of a service that answers each call as answer does. Both end with the test.
func client(t *testing.T, answer func(stream grpc.ServerStream) error) *grpcclient.Store {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return answer(stream)
	}))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	s, err := grpcclient.New(grpcclient.Config{Addrs: []string{l.Addr().String()}, Token: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// If a service echoes the token in an error, the token is not in the client's error.
func TestErrorsHideTheToken(t *testing.T) {
	s := client(t, func(stream grpc.ServerStream) error {
		header, _ := metadata.FromIncomingContext(stream.Context())
		return status.Errorf(codes.Unavailable, "who is %v?", header.Get("authorization"))
	})
	if _, err := s.Stats(t.Context()); err == nil || !strings.Contains(err.Error(), "who is [Bearer ***]?") {
		t.Errorf("%v; want the error without the token", err)
	}
}

// TestNoCallIsCutOff: a service that is too slow for all calls in their time answers some, and the
// others are not begun.
func TestNoCallIsCutOff(t *testing.T) {
	const takes, most = 20 * time.Millisecond, 4 * time.Second
	var served, cut atomic.Int64
	s := client(t, func(stream grpc.ServerStream) error {
		served.Add(1)
		select {
		case <-time.After(takes):
		case <-stream.Context().Done():
			cut.Add(1)
		}
		return status.Error(codes.NotFound, reservation.ErrUnknown.Error())
	})
	calls := make([]reservation.Call, 20_000)
	for i := range calls {
		calls[i] = reservation.Call{Verb: reservation.TryReserve, Host: "a.test", Lease: time.Minute}
	}
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	answered, late := 0, 0
	for _, a := range s.Do(ctx, calls) {
		switch {
		case errors.Is(a.Err, reservation.ErrUnknown):
			answered++
		case errors.Is(a.Err, context.DeadlineExceeded):
			late++
		}
	}
	if cut.Load() > 0 || answered != int(served.Load()) || answered == 0 || late == 0 ||
		answered+late != len(calls) {
		t.Errorf("%d calls were answered, %d were late, %d were served, and %d were cut off; "+
			"want all that were served to be answered", answered, late, served.Load(), cut.Load())
	}
}
