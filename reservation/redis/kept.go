package redis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Redis replicates after it has answered, so a fail-over loses the writes that the replica had not
// received. A lost lease does no harm: the store gives no new one until the lost one would have
// ended. A binding is in force for longer. If one is lost, its daemons still request the host in
// its group, while another daemon binds the host elsewhere. So the scripts that bind hosts wait for
// a replica.

// runKept runs scripts as run does. If this Redis has replicas, an answer without an error means
// that one of them has the writes. If none acknowledges them in time, the call fails and may be
// repeated. Redis drops a replica that is silent for its repl-timeout; then no call waits for it.
func (s *Store) runKept(ctx context.Context, ops []op) (answers []answer) {
	answers = make([]answer, len(ops))
	c, err := s.ready(ctx)
	if err != nil {
		return failed(answers, err)
	}
	err = c.Dedicated(func(one rueidis.DedicatedClient) error { // WAIT is about the writes of its connection
		return s.runAndWait(ctx, one, ops, answers)
	})
	for i := range answers {
		if err != nil && answers[i].err == nil {
			answers[i].err = err
		}
	}
	return s.ended(answers)
}

func (s *Store) runAndWait(ctx context.Context, one rueidis.DedicatedClient, ops []op,
	answers []answer) error {
	var commands []rueidis.Completed
	for _, o := range ops {
		commands = append(commands, s.command(one.B(), o))
	}
	commands = append(commands, one.B().Info().Section("replication").Build())
	results := one.DoMulti(ctx, commands...)
	for i := range ops {
		answers[i] = answerOf(results[i])
	}
	s.runUnknown(ctx, one, ops, answers)
	replication, err := results[len(ops)].ToString()
	if err != nil || !strings.Contains(replication, "state=online") {
		return err
	}
	// Since Redis 7.2 WAIT waits for nothing after scripts that found written what another connection wrote.
	results = one.DoMulti(ctx,
		one.B().Set().Key(s.cfg.Prefix+"chg_kept{chg}").Value("").Px(time.Second).Build(),
		one.B().Wait().Numreplicas(1).Timeout(s.replica.Milliseconds()).Build())
	if err := results[0].Error(); err != nil {
		return err
	}
	n, err := results[1].AsInt64()
	if err == nil && n == 0 {
		err = fmt.Errorf("no replica has taken what was written for %v, and a fail-over would lose it", s.replica)
	}
	return err
}
