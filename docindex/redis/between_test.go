package redis

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
)

// between does something once: before a script runs, or after it has run and before its answers are
// heard, which it may change.
type between struct {
	rueidis.Client
	sha   string
	first func()
	then  func(answers []rueidis.RedisResult)
}

func (b *between) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	here := len(commands) > 0 && commands[0].Commands()[1] == b.sha
	if here && b.first != nil {
		first := b.first
		b.first = nil
		first()
	}
	answers := b.Client.DoMulti(ctx, commands...)
	if here && b.then != nil {
		then := b.then
		b.then = nil
		then(answers)
	}
	return answers
}

// after has something done once when a script has run for a store.
func after(t *testing.T, s *Store, script *script, then func(answers []rueidis.RedisResult)) {
	t.Helper()
	_, sha := script.load()
	stepIn(t, s, &between{sha: sha, then: then}, script)
}

// before has something done once when a script is about to run for a store.
func before(t *testing.T, s *Store, script *script, first func()) {
	t.Helper()
	_, sha := script.load()
	stepIn(t, s, &between{sha: sha, first: first}, script)
}

func stepIn(t *testing.T, s *Store, b *between, script *script) {
	t.Helper()
	c := reach(t, s)
	text, _ := script.load()
	if err := c.Do(t.Context(), c.B().ScriptLoad().Script(text).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.Client = c
	s.client = b
}
