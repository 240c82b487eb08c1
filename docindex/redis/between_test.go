package redis

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
)

// between does something once: after a script has run, and before its answers are heard, which it
// may change.
type between struct {
	rueidis.Client
	sha  string
	then func(answers []rueidis.RedisResult)
}

func (b *between) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	here := b.then != nil && len(commands) > 0 && commands[0].Commands()[1] == b.sha
	answers := b.Client.DoMulti(ctx, commands...)
	if here {
		then := b.then
		b.then = nil
		then(answers)
	}
	return answers
}

// after has something done once when a script has run for a store.
func after(t *testing.T, s *Store, script *script, then func(answers []rueidis.RedisResult)) {
	c := reach(t, s)
	if err := c.Do(t.Context(), c.B().ScriptLoad().Script(script.text).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = &between{Client: c, sha: script.sha, then: then}
}
