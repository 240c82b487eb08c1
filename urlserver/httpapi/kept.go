package httpapi

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	maxKept = 16 // answers kept

	// An answer is given again for so long at least, and for so many times what it took to make:
	// however many ask, it takes a hundredth of a core. After a change an answer is made again at
	// once if it is cheap.
	keptFresh   = 2 * time.Second
	keptCheaply = 100
	keptCheap   = keptFresh / keptCheaply
)

// kept makes answers that take some work, each for all who ask at about the same time. Safe for
// concurrent use.
type kept[Q comparable, A any] struct {
	produce func(context.Context, Q) (A, error)

	lock    chan struct{} // a mutex that ends with a context; held while an answer is made, too
	answers map[Q]keptAnswer[A]

	changed atomic.Uint64 // counts changes of what the answers are about, together with changes
	changes func() uint64 // nil: nothing else counts them
}

type keptAnswer[A any] struct {
	answer A
	err    error
	until  time.Time // it is fresh
	cheap  bool      // it took at most keptCheap
	of     uint64    // changes when it was made
}

func newKept[Q comparable, A any](produce func(context.Context, Q) (A, error)) *kept[Q, A] {
	return &kept[Q, A]{produce: produce, lock: make(chan struct{}, 1), answers: map[Q]keptAnswer[A]{}}
}

// get returns the answer to q as it was a moment ago.
func (k *kept[Q, A]) get(ctx context.Context, q Q) (a A, err error) {
	select {
	case k.lock <- struct{}{}:
	case <-ctx.Done():
		return a, ctx.Err()
	}
	defer func() { <-k.lock }()
	began := time.Now()
	changes := k.changed.Load()
	if k.changes != nil {
		changes += k.changes()
	}
	if last, ok := k.answers[q]; ok && began.Before(last.until) && (last.of == changes || !last.cheap) {
		return last.answer, last.err
	}
	a, err = k.produce(ctx, q)
	if ctx.Err() != nil {
		return a, ctx.Err()
	}
	now := time.Now()
	fresh := keptFresh
	if err == nil {
		fresh = max(fresh, keptCheaply*now.Sub(began))
	}
	k.makeRoom(now)
	cheap := err == nil && now.Sub(began) <= keptCheap
	k.answers[q] = keptAnswer[A]{a, err, now.Add(fresh), cheap, changes}
	return a, err
}

// makeRoom drops the answers that are not fresh, and one where all are.
func (k *kept[Q, A]) makeRoom(now time.Time) {
	for q, a := range k.answers {
		if now.After(a.until) {
			delete(k.answers, q)
		}
	}
	for q := range k.answers {
		if len(k.answers) < maxKept {
			return
		}
		delete(k.answers, q)
	}
}
