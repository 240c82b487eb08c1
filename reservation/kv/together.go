package kv

import (
	"context"
	"sync"
)

// together calls do for each number below count, Config.Parallel at a time, and waits for all of
// them.
func (s *Store) together(count int, do func(i int)) {
	if s.cfg.Parallel < 2 || count < 2 {
		for i := range count {
			do(i)
		}
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	places := make(chan struct{}, s.cfg.Parallel)
	for i := range count {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			do(i)
		})
	}
}

// readEach reads records together, in the order of their keys.
func (s *Store) readEach(ctx context.Context, keys []string) (all []*versioned, errs []error) {
	all, errs = make([]*versioned, len(keys)), make([]error, len(keys))
	s.together(len(keys), func(i int) { all[i], errs[i] = s.read(ctx, keys[i]) })
	return all, errs
}

// updateAll is update for many records together. f may be called concurrently.
func (s *Store) updateAll(ctx context.Context, keys []string, f func(key string, r *record) bool) (
	[]*versioned, error) {
	all, errs := make([]*versioned, len(keys)), make([]error, len(keys))
	s.together(len(keys), func(i int) {
		all[i], errs[i] = s.update(ctx, keys[i], func(r *record) bool { return f(keys[i], r) })
	})
	return all, firstOf(errs...)
}
