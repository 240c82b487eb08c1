package grpcguard_test

import (
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"

	"urlserver/internal/netguard"
	"urlserver/internal/netguard/grpcguard"
	"urlserver/internal/testkit/netguardtest"
)

// An idle connection takes little memory: a thousand unauthenticated ones take less than 64 MB.
func TestConnectionsAreSmall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpcguard.Server{MaxMessage: 4 << 20}.Options()...)
	served := make(chan error, 1)
	go func() { served <- server.Serve(netguard.LimitListener(l, false)) }()
	defer func() { server.Stop(); <-served }()
	const conns, most = 500, 40 << 10
	before := netguardtest.InUse()
	for range conns {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn,
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
			t.Fatal(err)
		}
		settings := make([]byte, 9) // when they have arrived the server has the connection
		if _, err := io.ReadFull(conn, settings); err != nil {
			t.Fatal(err)
		}
	}
	if each := (netguardtest.InUse() - before) / conns; each > most {
		t.Errorf("a connection takes %d bytes; want at most %d", each, most)
	} else {
		t.Logf("a connection takes %d bytes", each)
	}
}
