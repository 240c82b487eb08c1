package redis

import (
	"context"
	"time"
)

// noticed is how soon a daemon notices what others have put.
const noticed = 2 * time.Second

// beat says again and again that this daemon is alive, until ctx ends.
func (s *Store) beat(ctx context.Context) {
	ticks := time.NewTicker(max(min(s.cfg.Lease/3, s.cfg.Janitor, noticed), time.Millisecond))
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			s.sweep(ctx)
		}
	}
}

// sweep says that this daemon is alive, makes true what has become due, ends deletions that nobody ended, and wakes who
// waits for what others have scheduled, or has to end or forget what they left word of. What goes wrong is for the next sweep.
func (s *Store) sweep(ctx context.Context) {
	more, changed := true, false
	for n := 0; more && n < maxCatch && ctx.Err() == nil; n++ {
		answers, err := s.unbroken(ctx, everyShard(beatScript, ""))
		if err != nil {
			return
		}
		more = catching(answers)
		for _, a := range answers {
			parts := list(a.value)
			if len(parts) != 5 {
				continue
			}
			if number(parts[3]) > 0 {
				s.leaveWord()
			}
			if seq := number(parts[1]); seq != s.lastSeqs[a.shard] {
				s.lastSeqs[a.shard], changed = seq, true
			}
			for _, queue := range list(parts[2]) {
				s.free(ctx, a.shard, text(queue))
			}
			for _, key := range texts(parts[4]) {
				_ = s.mend(ctx, a.shard, key) // or else after the next beat
			}
		}
	}
	s.rejoin(ctx)
	s.tellOwed(ctx)
	s.forgetMirrors(time.Now())
	if changed {
		s.wake()
	}
}

// retire gives back what this daemon has.
func (s *Store) retire(ctx context.Context) error {
	answers, err := s.everywhere(ctx, beatScript, "end")
	for n := 0; err == nil && catching(answers) && n < maxCatch; n++ {
		answers, err = s.everywhere(ctx, beatScript, "gone")
	}
	return err
}
