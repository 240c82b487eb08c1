package client_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	pb "urlserver/api/urlfrontier"
	"urlserver/frontier/client"
)

// script is a service that answers what a test wants, when it wants.
type script struct {
	grpc.ClientConnInterface
	grpc.ClientStream
	ctx  context.Context
	sent chan *pb.URLItem
	acks chan answer
}

type answer struct {
	id  string
	err error
}

func newScript() *script {
	return &script{sent: make(chan *pb.URLItem, 1<<16), acks: make(chan answer)}
}

func (s *script) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string,
	_ ...grpc.CallOption) (grpc.ClientStream, error) {
	s.ctx = ctx
	return s, nil
}

func (s *script) SendMsg(m any) error {
	s.sent <- m.(*pb.URLItem)
	return nil
}

func (s *script) CloseSend() error {
	close(s.sent)
	return nil
}

func (s *script) RecvMsg(m any) error {
	select {
	case a := <-s.acks:
		m.(*pb.AckMessage).ID = a.id
		return a.err
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// TestWindow has a service that answers late: the Putter stops at its Window, goes on with each
// answer, and Close waits for the last.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		answered := 0
		p, err := client.New(s).Put(t.Context(), func(*pb.URLItem, pb.AckMessage_Status) { answered++ })
		if err != nil {
			t.Fatal(err)
		}
		const n = client.Window + 100
		closed := make(chan error, 1)
		go func() {
			for range n {
				if err := p.Send(client.Discovered(&pb.URLInfo{Url: "http://a.test/"})); err != nil {
					t.Error(err)
				}
			}
			closed <- p.Close()
		}()
		ids := map[string]bool{}
		for i := range n {
			synctest.Wait()
			if got, want := i+len(s.sent), min(n, client.Window+i); got != want {
				t.Fatalf("%d items were sent after %d answers; want %d", got, i, want)
			}
			item := <-s.sent
			if ids[item.ID] {
				t.Fatalf("ID %s was given twice", item.ID)
			}
			ids[item.ID] = true
			s.acks <- answer{id: item.ID}
		}
		s.acks <- answer{err: io.EOF}
		if err := <-closed; err != nil || answered != n {
			t.Errorf("Close: %v, %d answers; want %d", err, answered, n)
		}
	})
}

// TestBroken has the service end the stream with items unanswered: each way they are told, in
// order.
func TestBroken(t *testing.T) {
	broken := errors.New("wire cut")
	for _, c := range []struct {
		name string
		last answer
		want string
	}{
		{"error", answer{err: broken}, "2 items are without an answer: wire cut"},
		{"end", answer{err: io.EOF}, "2 items are without an answer: unexpected EOF"},
		{"answer to nothing", answer{id: "9"}, `the service answers "9"`},
		{"second answer", answer{id: "2"}, `the service answers "2"`},
		{"no ID of ours", answer{id: "http://a.test/"}, `the service answers "http://a.test/"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript()
			p, err := client.New(s).Put(t.Context(), func(*pb.URLItem, pb.AckMessage_Status) {})
			if err != nil {
				t.Fatal(err)
			}
			var items []*pb.URLItem
			for range 3 {
				items = append(items, client.Discovered(&pb.URLInfo{Url: "http://a.test/"}))
				if err := p.Send(items[len(items)-1]); err != nil {
					t.Fatal(err)
				}
			}
			s.acks <- answer{id: "2"}
			s.acks <- c.last
			if err := p.Close(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: Close: %v; want %s", c.name, err, c.want)
			}
			if left := p.Unanswered(); len(left) != 2 || left[0] != items[0] || left[1] != items[2] {
				t.Errorf("%s: unanswered are %v; want the first and the third", c.name, left)
			}
			if s.ctx.Err() == nil {
				t.Errorf("%s: the call has not ended", c.name)
			}
		})
	}
}
