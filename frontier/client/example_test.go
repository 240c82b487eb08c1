package client_test

import (
	"context"
	"fmt"
	"log"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex/memory"
	"urlserver/frontier/client"
)

// A crawler puts what it found, gets what may be fetched now, and reports what it got.
func Example() {
	conn, end, err := serve(memory.New(), "") // for a running daemon: grpc.NewClient("127.0.0.1:7071", …)
	if err != nil {
		log.Fatal(err)
	}
	defer end()
	ctx, c := context.Background(), client.New(conn)

	put, err := c.Put(ctx, func(item *pb.URLItem, status pb.AckMessage_Status) {
		if found := item.GetDiscovered(); found != nil {
			fmt.Println(status, found.Info.Url)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, url := range []string{"http://a.example/1", "http://a.example/1", "http://b.example/1"} {
		if err := put.Send(client.Discovered(&pb.URLInfo{Url: url})); err != nil {
			log.Fatal(err)
		}
	}
	// now all are stored; those in put.Unanswered() would have to be put again
	if err := put.Close(); err != nil {
		log.Fatal(err)
	}

	report, err := c.Put(ctx, func(*pb.URLItem, pb.AckMessage_Status) {})
	if err != nil {
		log.Fatal(err)
	}
	for info, err := range c.Get(ctx, &pb.GetParams{MaxUrlsPerQueue: 1, DelayRequestable: 60}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("fetched", info.Url, "of", info.Key)
		if err := report.Send(client.Known(info, 0)); err != nil { // never again
			log.Fatal(err)
		}
	}
	if err := report.Close(); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// OK http://a.example/1
	// SKIPPED http://a.example/1
	// OK http://b.example/1
	// fetched http://a.example/1 of a.example
	// fetched http://b.example/1 of b.example
}
