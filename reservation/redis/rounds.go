package redis

import (
	"context"
	"sync"
)

// rounds has what many callers ask for be asked in few goes: what comes while one is under way waits for the next. Who is
// alone waits for nobody.
type rounds[T, R any] struct {
	ask func([]T) []R // answers in the order of what is asked

	mu      sync.Mutex
	running bool
	next    *round[T, R] // nil: nobody waits
}

type round[T, R any] struct {
	callers []context.Context
	asked   []T
	answers []*R          // nil to a caller that was gone when it began
	done    chan struct{} // closed when the answers are there
}

// do asks for one thing. A caller that goes away before its round begins asks for nothing; the answer to one that goes
// away later is dropped.
func (r *rounds[T, R]) do(ctx context.Context, asked T) (answer R, err error) {
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

func (r *rounds[T, R]) join(ctx context.Context, asked T) (mine *round[T, R], place int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &round[T, R]{done: make(chan struct{})}
	}
	mine = r.next
	mine.callers, mine.asked = append(mine.callers, ctx), append(mine.asked, asked)
	if !r.running {
		r.running = true
		go r.run()
	}
	return mine, len(mine.asked) - 1
}

func (r *rounds[T, R]) run() {
	for {
		r.mu.Lock()
		now := r.next
		r.next, r.running = nil, now != nil
		r.mu.Unlock()
		if now == nil {
			return
		}
		now.run(r.ask)
	}
}

func (r *round[T, R]) run(ask func([]T) []R) {
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
