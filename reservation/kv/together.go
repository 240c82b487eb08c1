package kv

import "sync"

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
