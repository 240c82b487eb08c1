package redis

import (
	"context"
	"sync"
	"time"
)

// batcher combines concurrent requests into few scripts. A lone caller is not delayed: it runs its
// script in its own goroutine, which takes a third less time than to wake another one and to wait for it.
// Requests that come while a batch runs wait until it ends, or until there are as many as in it and
// at least minBeside: then they run beside it, so that Redis works while the callers of the other
// batch are answered. At most two batches run at a time.
type batcher[T, R any] struct {
	ask func(context.Context, []T) []R // answers in the order of the requests

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
// later, do returns at once. A lone caller waits until its deadline, to know what it has reserved.
func (r *batcher[T, R]) do(ctx context.Context, asked T) (answer R, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	mine, place, alone := r.join(ctx, asked)
	wait := ctx
	if alone {
		own, cancel := deadlineOf(ctx)
		defer cancel()
		wait = own
		if at, ok := own.Deadline(); ok && time.Until(at) < soon {
			go r.run(unsent{own}, mine)
		} else {
			r.run(own, mine)
		}
	}
	select {
	case <-mine.done:
	default:
		select {
		case <-mine.done:
		case <-wait.Done():
			return answer, wait.Err()
		}
	}
	if mine.answers[place] == nil {
		return answer, ctx.Err()
	}
	return *mine.answers[place], nil
}

// soon is how long the client may take to connect and to wait for an answer. A lone caller whose deadline
// is sooner runs its script in another goroutine: connecting does not end with a context, and a deadline
// ends the connection, on which another caller may just have begun to wait.
const soon = dialTimeout + writeTimeout

// unsent is a context that a script is not sent after. The client does not see its end: it asks for Err
// before it sends.
type unsent struct{ context.Context }

// Deadline is [context.Context.Deadline].
func (unsent) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is [context.Context.Done].
func (unsent) Done() <-chan struct{} { return nil }

// deadlineOf returns a context that ends with ctx's deadline alone. The client of Redis writes and reads
// in the caller's goroutine then. For a context that may be cancelled it would begin goroutines.
func deadlineOf(ctx context.Context) (own context.Context, cancel context.CancelFunc) {
	if at, ok := ctx.Deadline(); ok {
		return context.WithDeadline(context.WithoutCancel(ctx), at)
	}
	return context.WithoutCancel(ctx), func() {}
}

// join adds a request to the next batch, and starts the batch if it may begin now. If alone is
// true, nobody else is in the batch, and the caller has to run it.
func (r *batcher[T, R]) join(ctx context.Context, asked T) (mine *batch[T, R], place int, alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &batch[T, R]{done: make(chan struct{})}
	}
	mine = r.next
	mine.callers, mine.asked = append(mine.callers, ctx), append(mine.asked, asked)
	now := r.nextLocked()
	alone = now != nil && len(now.asked) == 1
	if now != nil && !alone {
		go r.run(context.Background(), now)
	}
	return mine, len(mine.asked) - 1, alone
}

const minBeside = 8 // callers; for this many, a script's fixed cost is small

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
func (r *batcher[T, R]) run(ctx context.Context, now *batch[T, R]) {
	now.run(ctx, r.ask)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	r.asking -= len(now.asked)
	if next := r.nextLocked(); next != nil {
		go r.run(context.Background(), next)
	}
}

func (r *batch[T, R]) run(ctx context.Context, ask func(context.Context, []T) []R) {
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
	answers := ask(ctx, asked)
	for n := range answers {
		r.answers[here[n]] = &answers[n]
	}
}
