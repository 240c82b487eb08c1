package frontier_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/docindex/indextest"
)

// bytesCodec sends and takes messages as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// FuzzCalls sends any bytes to any of the calls. The service answers with whatever status, but in
// time, and goes on: counts stay what a walk over all URLs finds.
func FuzzCalls(f *testing.F) {
	add := func(call uint8, m proto.Message) {
		text, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(call, text)
	}
	for i := range pb.URLFrontier_ServiceDesc.Streams {
		f.Add(uint8(i), []byte("\xff\xff\xff"))
	}
	add(0, &pb.GetParams{MaxQueues: 1, Item: &pb.GetParams_CrawlID{CrawlID: "c"}})
	add(1, discovered("http://a.test/"))
	add(1, known("http://a.test/", 1<<63))
	add(2, &pb.DiscoveredBatch{ID: "x", Items: []*pb.URLInfo{{Url: "http://a.test/"}, {}}})
	add(3, &pb.ListUrlParams{Size: 1 << 31})
	add(9, &pb.BlockQueueParams{Key: "a.test", Time: 1 << 63})
	f.Fuzz(func(t *testing.T, call uint8, message []byte) {
		r := newRig(t, nil)
		r.put(discovered("http://seed.test/"))
		if err := send(t, r, call, message); status.Code(err) == codes.DeadlineExceeded ||
			status.Code(err) == codes.Unavailable {
			t.Fatalf("call %d with %q: %v", call, message, err)
		}
		for _, crawl := range indextest.CrawlsOf(t, r.store) {
			walked, scope := uint64(0), docindex.Scope{Crawl: []byte(crawl)}
			if err := r.store.List(t.Context(), scope, func(*docindex.Document) bool {
				walked++
				return true
			}); err != nil {
				t.Fatal(err)
			}
			if n := indextest.Count(t, r.store, &scope); walked != n.Scheduled+n.InTransit+n.Completed {
				t.Errorf("after call %d with %q: %d URLs, counts %+v", call, message, walked, n)
			}
		}
	})
}

// send makes a call with one message and waits for its end.
func send(t *testing.T, r *rig, call uint8, message []byte) error {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	desc := &pb.URLFrontier_ServiceDesc
	path, n := "/"+desc.ServiceName+"/", int(call)%(len(desc.Streams)+len(desc.Methods))
	var answer []byte
	if n >= len(desc.Streams) {
		return r.conn.Invoke(ctx, path+desc.Methods[n-len(desc.Streams)].MethodName, &message, &answer,
			grpc.ForceCodecV2(bytesCodec{}))
	}
	stream, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		path+desc.Streams[n].StreamName, grpc.ForceCodecV2(bytesCodec{}))
	if err != nil {
		return err
	}
	if err := stream.SendMsg(&message); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for err == nil {
		err = stream.RecvMsg(&answer)
	}
	return err
}
