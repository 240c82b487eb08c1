package redis

import (
	"context"
	"sync"
)

// rounds has what many callers ask for be asked in few goes. Who is alone waits for nobody. What comes while a round is
// under way waits until it is over, or until it is as much, and enough for a script to be worth its while: then it is asked
// beside it, so that Redis has something to do while callers are told what came of the other. There are two at a time at most.
type rounds[T, R any] struct {
	ask func([]T) []R // answers in the order of what is asked

	mu      sync.Mutex
	running int          // rounds under way
	asking  int          // callers in them
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
	if now := r.begunLocked(); now != nil {
		go r.run(now)
	}
	return mine, len(mine.asked) - 1
}

const roundsBeside = 8 // callers: what a script costs at all is small against what it does for so many

// begunLocked is the round that begins now, if one does.
func (r *rounds[T, R]) begunLocked() (now *round[T, R]) {
	if r.next == nil || r.running > 1 || r.running == 1 && len(r.next.asked) < max(r.asking, roundsBeside) {
		return nil
	}
	now, r.next = r.next, nil
	r.running++
	r.asking += len(now.asked)
	return now
}

func (r *rounds[T, R]) run(now *round[T, R]) {
	for now != nil {
		now.run(r.ask)
		r.mu.Lock()
		r.running--
		r.asking -= len(now.asked)
		now = r.begunLocked()
		r.mu.Unlock()
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
