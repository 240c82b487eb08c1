package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc"

	pb "urlserver/api/urlfrontier"
)

// Window is how many items of a Putter may be without an answer: as many as the service takes in.
const Window = 1024

// Putter puts items on one stream, without waiting for the answer to each. Its methods are not safe for concurrent use.
type Putter struct {
	stream   grpc.BidiStreamingClient[pb.URLItem, pb.AckMessage]
	answered func(*pb.URLItem, pb.AckMessage_Status)
	cancel   context.CancelFunc
	last     uint64        // ID given
	room     chan struct{} // holds one for each item without an answer
	ended    chan struct{} // closed when no answer will come any more
	err      error         // why; set before ended is closed

	mu      sync.Mutex // guards waiting
	waiting map[uint64]*pb.URLItem
}

// Put begins to put items. answered is called with each item and what became of it, one at a time, in the order of
// the answers; it must not call the Putter. The Putter has to be closed.
func (c *Client) Put(ctx context.Context, answered func(*pb.URLItem, pb.AckMessage_Status)) (*Putter, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.api.PutURLs(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	p := &Putter{
		stream: stream, answered: answered, cancel: cancel,
		room: make(chan struct{}, Window), ended: make(chan struct{}), waiting: map[uint64]*pb.URLItem{},
	}
	go p.receive() // until Close
	return p, nil
}

// Send puts an item, which is the Putter's until it is answered; its ID is set anew. It waits while a whole Window is
// without an answer. After an error the stream is broken: Close it.
func (p *Putter) Send(item *pb.URLItem) error {
	select {
	case p.room <- struct{}{}:
	case <-p.ended:
		return p.broken()
	}
	p.last++
	item.ID = strconv.FormatUint(p.last, 10)
	p.mu.Lock()
	p.waiting[p.last] = item
	p.mu.Unlock()
	if err := p.stream.Send(item); err != nil {
		<-p.ended
		if errors.Is(err, io.EOF) {
			return p.broken() // which says more
		}
		return err
	}
	return nil
}

// Close waits for the answers to all that was sent, and ends. An error says that some have none: Unanswered are those.
// To put them again does no harm.
func (p *Putter) Close() error {
	if err := p.stream.CloseSend(); err != nil {
		p.cancel()
	}
	<-p.ended
	p.cancel()
	if n := len(p.waiting); n > 0 {
		return fmt.Errorf("%d items are without an answer: %w", n, p.broken())
	}
	if !errors.Is(p.err, io.EOF) {
		return p.err
	}
	return nil
}

// Unanswered are the items that have no answer, in the order of Send; for use after Close.
func (p *Putter) Unanswered() (items []*pb.URLItem) {
	for _, id := range slices.Sorted(maps.Keys(p.waiting)) {
		items = append(items, p.waiting[id])
	}
	return items
}

// broken is why there are no more answers; the service may not end a stream by itself.
func (p *Putter) broken() error {
	if errors.Is(p.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return p.err
}

// receive takes answers until there are no more.
func (p *Putter) receive() {
	defer close(p.ended)
	for {
		ack, err := p.stream.Recv()
		if err != nil {
			p.err = err
			return
		}
		item := p.take(ack.ID)
		if item == nil {
			p.err = fmt.Errorf("the service answers %.100q, which was not put or is answered", ack.ID)
			p.cancel()
			return
		}
		p.answered(item, ack.Status)
		<-p.room
	}
}

// take is the item that waits under an ID, which waits no longer.
func (p *Putter) take(text string) *pb.URLItem {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	item := p.waiting[id]
	delete(p.waiting, id)
	return item
}
