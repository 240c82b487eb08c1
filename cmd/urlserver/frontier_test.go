package main

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "urlserver/api/urlfrontier"
)

// TestFrontier puts a URL through gRPC, and finds it in the metrics of HTTP.
func TestFrontier(t *testing.T) {
	d := startDaemon(t, settings(t, `frontier.listen = "127.0.0.1:0"`))
	addr := d.frontier
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := pb.NewURLFrontierClient(conn)
	stream, err := client.PutURLs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	item := &pb.URLItem{Item: &pb.URLItem_Discovered{
		Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: "http://a.test/"}},
	}}
	if err := stream.Send(item); err != nil {
		t.Fatal(err)
	}
	if ack, err := stream.Recv(); err != nil || ack.Status != pb.AckMessage_OK {
		t.Errorf("acknowledged %v, %v; want OK", ack, err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	_, text := d.ask("GET", "/metrics", "")
	for _, want := range []string{
		"frontier_putURLs_total 1\n", `frontier_putURLs_discovered_total{discovered="true"} 1`,
		`urlserver_frontier_urls{state="scheduled"} 1`, `urlserver_frontier_queues{state="active"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if code, log := d.stop(); code != 0 {
		t.Errorf("exit status %d, log %s", code, log)
	}
}

// TestFrontierCertificate does not start with a certificate that cannot be used.
func TestFrontierCertificate(t *testing.T) {
	bad := write(t, "bad.pem", "text")
	file := settings(t,
		fmt.Sprintf("frontier.listen = \"127.0.0.1:0\"\nfrontier.tls_cert = %q\nfrontier.tls_key = %q", bad, bad))
	command(t, "", "serve", file).want(t, 1, "", "frontier.tls_cert "+bad)
}
