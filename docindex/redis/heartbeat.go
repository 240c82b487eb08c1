package redis

import (
	"context"
	"time"
)

// noticed is the longest time after which a daemon notices what others have put.
const noticed = 2 * time.Second

// OnLeaseLost registers lost. It is called when this daemon's process has stood still for a
// lease, and when Redis answers again after a lease without a heartbeat. By then other daemons may
// have documents of its slots, and hosts may have sent them a Retry-After that this daemon does not
// know. The daemon must Return the documents that it has not sent. lost may block but must not call
// the store.
func (s *Store) OnLeaseLost(lost func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaseLost = lost
}

// heartbeat sweeps at intervals until ctx ends.
func (s *Store) heartbeat(ctx context.Context) {
	ticks := time.NewTicker(max(min(s.cfg.Lease/3, s.cfg.Janitor, noticed), time.Millisecond))
	defer ticks.Stop()
	ended := time.Now() // the last sweep
	s.alive = ended
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			if time.Since(ended) > s.cfg.Lease { // the process stood still
				s.alive = time.Now()
				s.tellLeaseLost() // before Redis answers: the slots would send meanwhile
			}
			s.sweep(ctx)
			ended = time.Now()
		}
	}
}

func (s *Store) tellLeaseLost() {
	s.mu.Lock()
	lost := s.leaseLost
	s.mu.Unlock()
	if lost != nil {
		lost()
	}
}

// sweep records in all shards that this daemon is alive, and processes what has become due there.
// It finishes deletions that a dead daemon began, wakes the slots for what other daemons have
// scheduled, and notifies the inbox. The next sweep repeats what fails.
func (s *Store) sweep(ctx context.Context) {
	more, changed := true, false
	for n := 0; more && n < maxCatch && ctx.Err() == nil; n++ {
		began := time.Now()
		answers, err := s.unbroken(ctx, everyShard(heartbeatScript, ""))
		if err != nil {
			return
		}
		if time.Since(s.alive) > s.cfg.Lease {
			s.tellLeaseLost()
		}
		s.alive = began
		more = catching(answers)
		for _, a := range answers {
			parts := list(a.value)
			if len(parts) != 5 {
				continue
			}
			if number(parts[3]) > 0 {
				s.notifyInbox()
			}
			if seq := number(parts[1]); seq != s.lastSeqs[a.shard] {
				s.lastSeqs[a.shard], changed = seq, true
			}
			for _, queue := range list(parts[2]) {
				s.free(ctx, a.shard, text(queue))
			}
			for _, key := range texts(parts[4]) {
				_ = s.mend(ctx, a.shard, key) // the next heartbeat repeats it
			}
		}
	}
	s.pace.askAgain()
	_ = s.closeQueues(ctx) // or else a client that asks for nothing more would keep their addresses
	s.rejoin(ctx)
	s.retryDeferred(ctx)
	s.dropSnapshots(time.Now())
	if changed {
		s.wake()
	}
}

// retire records that this daemon has ended, which returns its documents.
func (s *Store) retire(ctx context.Context) error {
	answers, err := s.everywhere(ctx, heartbeatScript, "end")
	for n := 0; err == nil && catching(answers) && n < maxCatch; n++ {
		answers, err = s.everywhere(ctx, heartbeatScript, "gone")
	}
	return err
}
