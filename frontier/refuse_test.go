package frontier_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/frontier"
)

// TestMaxMessage sends what is larger than frontier.max_message: the error says how large it was
// and what is taken.
func TestMaxMessage(t *testing.T) {
	const most = 1000
	r := newRig(t, func(c *frontier.Config) { c.Settings.MaxMessage = most })
	large := "http://a.test/" + strings.Repeat("x", most)
	refused := func(call string, size int, err error) {
		t.Helper()
		if status.Code(err) != codes.ResourceExhausted ||
			!strings.Contains(err.Error(),
				fmt.Sprintf("received message larger than max (%d vs. %d)", size, most)) {
			t.Errorf("%s: %v; want RESOURCE_EXHAUSTED and the bound", call, err)
		}
	}
	stream := must[interface {
		Send(*pb.URLItem) error
		Recv() (*pb.AckMessage, error)
	}](t)(r.PutURLs(soon(t)))
	if err := stream.Send(discovered("http://a.test/before")); err != nil {
		t.Fatal(err)
	}
	if ack, err := stream.Recv(); err != nil || ack.ID != "http://a.test/before" ||
		ack.Status != pb.AckMessage_OK {
		t.Errorf("the first answer is %v, %v; want OK for what came before", ack, err)
	}
	if err := stream.Send(discovered(large)); err != nil {
		t.Fatal(err)
	}
	_, err := stream.Recv()
	refused("PutURLs", proto.Size(discovered(large)), err)

	batches := must[interface {
		Send(*pb.DiscoveredBatch) error
		Recv() (*pb.BatchAck, error)
	}](t)(r.PutDiscovered(soon(t)))
	batch := &pb.DiscoveredBatch{Items: []*pb.URLInfo{{Url: large}}}
	if err := batches.Send(batch); err != nil {
		t.Fatal(err)
	}
	_, err = batches.Recv()
	refused("PutDiscovered", proto.Size(batch), err)
	_, err = r.GetURLStatus(soon(t), &pb.URLStatusRequest{Url: large})
	refused("GetURLStatus", proto.Size(&pb.URLStatusRequest{Url: large}), err)
	if n := indextest.Count(t, r.store, nil); n.Scheduled != 1 {
		t.Errorf("the store has %+v; want the URL that came before", n)
	}
	if acks := r.put(discovered("http://a.test/" + strings.Repeat("y", most-100))); len(acks) != 1 {
		t.Errorf("acknowledged %v; want what is within the bound", acks)
	}
}

// TestMalformedLog finds the reasons for items that were skipped in the log, with their stream, at
// debug level alone.
func TestMalformedLog(t *testing.T) {
	for _, level := range []zerolog.Level{zerolog.DebugLevel, zerolog.InfoLevel} {
		var log bytes.Buffer
		r := newRig(t, func(c *frontier.Config) { c.Log = zerolog.New(zerolog.SyncWriter(&log)).Level(level) })
		r.put(discovered("http://a.test/"), discovered("http://a.test/"))
		r.put(discoveredInfo(&pb.URLInfo{Url: "http://a.test/1", Key: strings.Repeat("k", 256)}))
		r.put(discovered("http://a.test/" + strings.Repeat("x", 9000)))
		var many []*pb.URLItem
		for i := range 400 {
			many = append(many, &pb.URLItem{ID: fmt.Sprint(i)})
		}
		r.put(many...)
		r.stop()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if level == zerolog.InfoLevel {
			if log.Len() > 0 {
				t.Errorf("at info the log has\n%s", log.String())
			}
			continue
		}
		if len(lines) < 3 || len(lines) > 2+3*400 { // the 400 come in some batches
			t.Fatalf("the log has\n%s\nwant 2 lines and some", log.String())
		}
		for i, want := range []struct{ url, err string }{
			{"http://a.test/1", "key longer than 255"}, {"http://a.test/xxx", "9014 bytes"}, {"", "no URL"},
		} {
			var line struct {
				Level, Error, URL, Client string
				Stream                    int
			}
			if err := json.Unmarshal([]byte(lines[i]), &line); err != nil {
				t.Fatal(err)
			}
			if line.Level != "debug" || line.Stream != 2+i || line.Client == "" ||
				!strings.Contains(line.Error, want.err) ||
				!strings.HasPrefix(line.URL, want.url) || len(line.URL) > 200 {
				t.Errorf("line %d is %s; want stream %d, %s and %s", i, lines[i], 2+i, want.url, want.err)
			}
		}
	}
}

// TestNotUTF8 sends text that is not UTF-8, which only clients without generated code can: nothing
// is kept of it, and what is answered they can read.
func TestNotUTF8(t *testing.T) {
	r := newRig(t, nil)
	answer := func(call string, ask func(*[]byte) error, into proto.Message) {
		t.Helper()
		var text []byte
		if err := ask(&text); err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		if err := proto.Unmarshal(text, into); err != nil {
			t.Errorf("%s answers %q: %v", call, text, err)
		}
	}
	raw := grpc.ForceCodecV2(bytesCodec{})
	var none []byte
	setDelay := []byte("\x0a\x01\xff\x10\x05")
	if err := r.conn.Invoke(soon(t), pb.URLFrontier_SetDelay_FullMethodName, &setDelay, &none,
		raw); status.Code(err) != codes.InvalidArgument {
		t.Errorf("SetDelay: %v; want INVALID_ARGUMENT", err)
	}
	var ack pb.AckMessage
	answer("PutURLs", func(text *[]byte) error {
		return first(t, r, pb.URLFrontier_PutURLs_FullMethodName, "\x0a\x05\x0a\x03\x0a\x01\xff", text)
	}, &ack)
	if ack.Status != pb.AckMessage_SKIPPED {
		t.Errorf("a URL is acknowledged with %v; want SKIPPED", ack.Status)
	}
	answer("PutDiscovered", func(text *[]byte) error {
		return first(t, r, pb.URLFrontier_PutDiscovered_FullMethodName, "\x0a\x01\xff", text)
	}, &pb.BatchAck{})
	set := 0
	if err := r.store.Settings(t.Context(), func(*docindex.Setting) bool {
		set++
		return true
	}); err != nil || set > 0 {
		t.Errorf("%d settings are kept, %v; want none", set, err)
	}
}

// first sends one message of a stream and takes its first answer.
func first(t *testing.T, r *rig, method, message string, answer *[]byte) error {
	stream, err := r.conn.NewStream(soon(t), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		method, grpc.ForceCodecV2(bytesCodec{}))
	if err != nil {
		return err
	}
	text := []byte(message)
	if err := stream.SendMsg(&text); err != nil {
		return err
	}
	return stream.RecvMsg(answer)
}
