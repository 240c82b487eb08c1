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

// Window is how many items of a Putter may be unanswered: as many as the service accepts.
const Window = 1024

// Putter puts items on one stream, without waiting for the answer to each. Its methods are not safe
// for concurrent use.
type Putter struct {
	stream   grpc.BidiStreamingClient[pb.URLItem, pb.AckMessage]
	answered func(*pb.URLItem, pb.AckMessage_Status)
	cancel   context.CancelFunc
	last     uint64        // the last ID
	room     chan struct{} // holds one value for each unanswered item
	ended    chan struct{} // closed when no more answers can come
	err      error         // why; set before ended is closed

	mu      sync.Mutex // guards waiting
	waiting map[uint64]*pb.URLItem
}

// Put begins to put items. It calls answered with each item and its status, one at a time, in the
// order of the answers. answered must not call the Putter. The caller has to close the Putter.
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

// Send puts an item. The item belongs to the Putter until it is answered, and the Putter sets its
// ID. Send waits while a whole Window is unanswered. After an error the stream is broken, and the
// caller closes it.
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
			return p.broken() // it has the cause
		}
		return err
	}
	return nil
}

// Close waits for the answers to all items, and ends the stream. After an error some items have no
// answer: see Unanswered. They may be put again.
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

// Unanswered returns the items without an answer, in the order of Send. Call it after Close.
func (p *Putter) Unanswered() (items []*pb.URLItem) {
	for _, id := range slices.Sorted(maps.Keys(p.waiting)) {
		items = append(items, p.waiting[id])
	}
	return items
}

// broken returns why no more answers come. The service may not end a stream by itself.
func (p *Putter) broken() error {
	if errors.Is(p.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return p.err
}

// receive reads answers until there are no more.
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

// take returns the item with an ID, which is no longer unanswered.
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
