package redis

import (
	"context"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

const maxRetryAfter = 3_600_000 // ms

// Answered is [docindex.Frontier.Answered]. A success counts only if a failure of its host was
// reported through this daemon before.
func (s *Store) Answered(ctx context.Context, all []docindex.HostAnswer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var args [shards][]string
	for i := range all {
		host, retry := hostName(string(all[i].Host)), int64(-1)
		s.pace.answered(host, all[i].Status, s.nowMS())
		switch fails := all[i].Status == 429 || all[i].Status == 503; {
		case fails:
			retry = min(all[i].RetryAfter.Milliseconds(), maxRetryAfter)
			s.backsOff(host, true)
		case all[i].Status < 200 || all[i].Status >= 400 || !s.backsOff(host, false):
			continue
		}
		shard := shardOf(host)
		args[shard] = append(args[shard], "answer", decimal(retry), decimal(s.leastGap(host)), host)
	}
	return s.updateHosts(ctx, args)
}

// maxBackingOff is how many hosts that back off the store remembers. Successes of other hosts do
// not count.
const maxBackingOff = 100_000

// backsOff reports whether a host is known to back off. If now is true, it remembers the host.
func (s *Store) backsOff(host string, now bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now && len(s.backingOff) < maxBackingOff {
		s.backingOff[host] = struct{}{}
	}
	_, is := s.backingOff[host]
	return is
}

// leastGap returns the least gap of a host in ms: the default delay of queues, or a rule's gap if
// that is longer.
func (s *Store) leastGap(host string) int64 {
	return max(queuesched.DefaultDelay, s.ruleGap(host))
}

// ruleGap returns the gap in ms that a rule sets for a host; 0: none does.
func (s *Store) ruleGap(host string) int64 {
	of := s.rules.Load()
	if of == nil || *of == nil {
		return 0
	}
	return (*of)([]byte(host)).Gap
}
