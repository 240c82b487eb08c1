package redis

import (
	"context"
	"sync"
)

// batcher combines concurrent requests into few scripts. A lone caller is not delayed: it runs its
// batch itself, which costs a third less time than to wake another goroutine and to be woken by it.
// Requests that come while a batch runs wait until it ends, or until there are as many as in it and
// at least minBeside: then they run beside it, so that Redis works while the callers of the other
// batch are answered. At most two batches run at a time.
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

// do makes one request. If ctx ends before its batch begins, the request is not made. If it ends
// later, the caller that runs the batch gets the answer all the same, and those of the others are
// dropped.
func (r *batcher[T, R]) do(ctx context.Context, asked T) (answer R, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	mine, place, begins := r.join(ctx, asked)
	if begins {
		r.run(mine)
		return mine.answer(ctx, place)
	}
	select {
	case <-mine.done:
		return mine.answer(ctx, place)
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

// answer returns the answer to one of the requests, once the batch is done.
func (r *batch[T, R]) answer(ctx context.Context, place int) (answer R, err error) {
	if r.answers[place] == nil {
		return answer, ctx.Err()
	}
	return *r.answers[place], nil
}

// join adds a request to the next batch. begins says that the caller is to run that batch now.
func (r *batcher[T, R]) join(ctx context.Context, asked T) (mine *batch[T, R], place int, begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &batch[T, R]{done: make(chan struct{})}
	}
	mine = r.next
	mine.callers, mine.asked = append(mine.callers, ctx), append(mine.asked, asked)
	return mine, len(mine.asked) - 1, r.nextLocked() != nil
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

// run runs a batch, and starts the one that may begin then.
func (r *batcher[T, R]) run(now *batch[T, R]) {
	now.run(r.ask)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	r.asking -= len(now.asked)
	if next := r.nextLocked(); next != nil {
		go r.run(next)
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
