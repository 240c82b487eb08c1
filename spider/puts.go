package spider

import (
	"context"
	"strconv"
	"sync"

	"urlserver/protocol"
)

// onConnection is the Config.Index that puts links on the connection that the page came from.
const onConnection = "-"

// maxUnanswered bounds the PUT lines on a connection that have no answer yet.
const maxUnanswered = 256

// puts puts links to the daemon on the connection that their page came from.
type puts struct {
	out   *statuses
	count *counters
	room  chan struct{} // holds one for each PUT without an answer

	mu      sync.Mutex // guards all below; held for memory work only
	last    uint64     // number of the last tag
	waiting map[string]chan<- protocol.PutResult
}

func newPuts(out *statuses, count *counters) *puts {
	return &puts{
		out: out, count: count, room: make(chan struct{}, maxUnanswered),
		waiting: map[string]chan<- protocol.PutResult{},
	}
}

// put returns when the daemon has taken or refused each of objects, which are links. It puts those
// again that the daemon could not store. Its error is ctx's.
func (p *puts) put(ctx context.Context, objects []string) error {
	for wait := (backoff{}); ; wait.sleep(ctx) {
		var err error
		if objects, err = p.putOnce(ctx, objects); err != nil || len(objects) == 0 {
			return err
		}
	}
}

// putOnce puts each of objects once. It returns those that were not stored and should be put again.
func (p *puts) putOnce(ctx context.Context, objects []string) (failed []string, err error) {
	results := make([]chan protocol.PutResult, len(objects))
	for i, object := range objects {
		results[i] = make(chan protocol.PutResult, 1)
		if err := p.send(ctx, []byte(object), results[i]); err != nil {
			return nil, err
		}
	}
	for i, result := range results {
		select {
		case r := <-result:
			switch r {
			case protocol.PutFail:
				failed = append(failed, objects[i])
			case protocol.PutInvalid:
				p.count.linksRefused.Add(1)
			default:
				p.count.linksTaken.Add(1)
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return failed, nil
}

// putObject puts one JSON object, and returns the daemon's answer. Its error is ctx's.
func (p *puts) putObject(ctx context.Context, object []byte) (protocol.PutResult, error) {
	result := make(chan protocol.PutResult, 1)
	if err := p.send(ctx, object, result); err != nil {
		return protocol.PutFail, err
	}
	select {
	case r := <-result:
		return r, nil
	case <-ctx.Done():
		return protocol.PutFail, context.Cause(ctx)
	}
}

// send sends a PUT as soon as fewer than maxUnanswered are without an answer. An object that no
// line can hold gets the result PutInvalid.
func (p *puts) send(ctx context.Context, object []byte, result chan<- protocol.PutResult) error {
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	tag := strconv.FormatUint(p.last, 10)
	line := protocol.AppendPut(nil, []byte(tag), object)
	if len(line) > protocol.MaxLong {
		<-p.room
		result <- protocol.PutInvalid
		return nil
	}
	p.waiting[tag] = result
	p.out.say(line)
	return nil
}

// answered takes a line of the daemon if it answers a PUT.
func (p *puts) answered(line []byte) bool {
	tag, result, _, err := protocol.ParsePutAnswer(line)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.waiting[string(tag)]
	if to == nil {
		return false
	}
	delete(p.waiting, string(tag))
	to <- result // never blocks: it holds one
	<-p.room
	return true
}
