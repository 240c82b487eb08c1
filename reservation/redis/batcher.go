package redis

import (
	"context"
	"sync"
)

// batcher combines concurrent requests into few scripts. A lone caller is not delayed. Requests
// that come while a batch runs wait until it ends, or until there are as many as in it and at least
// minBeside: then they run beside it, so that Redis works while the callers of the other batch are
// answered. At most two batches run at a time.
type batcher[T, R any] struct {
	ask func([]T) []R // answers in the order of the requests

	mu      sync.Mutex
	running int          // batches
	asking  int          // callers in them
	next    *batch[T, R] // nil: nobody waits
}

type batch[T, R any] struct {
	callers []context.Context
	asked   []T
	answers []*R          // nil for a caller that was gone when the batch began
	done    chan struct{} // closed when the answers are there
}

// do makes one request. If ctx ends before its batch begins, the request is not made; if it ends
// later, the answer is dropped.
func (r *batcher[T, R]) do(ctx context.Context, asked T) (answer R, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	mine, place := r.join(ctx, asked)
	select {
	case <-mine.done:
	case <-ctx.Done():
		return answer, ctx.Err()
	}
	if mine.answers[place] == nil {
		return answer, ctx.Err()
	}
	return *mine.answers[place], nil
}

func (r *batcher[T, R]) join(ctx context.Context, asked T) (mine *batch[T, R], place int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &batch[T, R]{done: make(chan struct{})}
	}
	mine = r.next
	mine.callers, mine.asked = append(mine.callers, ctx), append(mine.asked, asked)
	if now := r.nextLocked(); now != nil {
		go r.run(now)
	}
	return mine, len(mine.asked) - 1
}

const minBeside = 8 // callers: for so many a script's fixed cost is small

// nextLocked returns the batch that begins now; nil: none does.
func (r *batcher[T, R]) nextLocked() (now *batch[T, R]) {
	if r.next == nil || r.running > 1 || r.running == 1 && len(r.next.asked) < max(r.asking, minBeside) {
		return nil
	}
	now, r.next = r.next, nil
	r.running++
	r.asking += len(now.asked)
	return now
}

func (r *batcher[T, R]) run(now *batch[T, R]) {
	for now != nil {
		now.run(r.ask)
		r.mu.Lock()
		r.running--
		r.asking -= len(now.asked)
		now = r.nextLocked()
		r.mu.Unlock()
	}
}

func (r *batch[T, R]) run(ask func([]T) []R) {
	defer close(r.done)
	r.answers = make([]*R, len(r.asked))
	var here []int
	var asked []T
	for i, caller := range r.callers {
		if caller.Err() == nil {
			here, asked = append(here, i), append(asked, r.asked[i])
		}
	}
	if len(asked) == 0 {
		return
	}
	answers := ask(asked)
	for n := range answers {
		r.answers[here[n]] = &answers[n]
	}
}
