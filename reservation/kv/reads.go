package kv

import (
	"context"
	"sync"
)

// ManyKV is a KV that can read many keys in one call, which costs it little more than reading one.
type ManyKV interface {
	// GetMany returns the values of keys, in their order, nil for a key that has none.
	GetMany(ctx context.Context, keys []string) ([][]byte, error)
}

const (
	mostReads = 4   // concurrent calls of GetMany
	mostKeys  = 100 // of one call of GetMany; etcd refuses transactions of more than 128
)

// reads gathers concurrent reads of a ManyKV into few calls. A read that finds fewer than mostReads
// calls under way begins one at once. Reads that arrive later wait for the end of one of these, and go
// together in the next. So each key is read after it was asked for, as with a call of its own. The
// methods of reads may be called concurrently.
type reads struct {
	many ManyKV

	mu      sync.Mutex // guards all below
	waiting []*read
	running int // goroutines in run
}

// read is one read. The goroutine that closes done has set the result.
type read struct {
	key   string
	done  chan struct{}
	value []byte
	err   error
}

// get returns a key's value, nil if it has none.
func (r *reads) get(ctx context.Context, key string) ([]byte, error) {
	one := &read{key: key, done: make(chan struct{})}
	r.mu.Lock()
	r.waiting = append(r.waiting, one)
	starts := r.running < mostReads
	if starts {
		r.running++
	}
	r.mu.Unlock()
	if starts {
		go r.run(context.WithoutCancel(ctx))
	}
	select {
	case <-one.done:
		return one.value, one.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run reads what waits, until nothing does.
func (r *reads) run(ctx context.Context) {
	for {
		some := r.next()
		if len(some) == 0 {
			return
		}
		keys := make([]string, len(some))
		for i, one := range some {
			keys[i] = one.key
		}
		values, err := r.many.GetMany(ctx, keys)
		for i, one := range some {
			if one.err = err; err == nil {
				one.value = values[i]
			}
			close(one.done)
		}
	}
}

// next takes the reads of the next call; none: run has to end.
func (r *reads) next() []*read {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.running--
		return nil
	}
	some := r.waiting[:min(mostKeys, len(r.waiting))]
	if r.waiting = r.waiting[len(some):]; len(r.waiting) == 0 {
		r.waiting = nil
	}
	return some
}
