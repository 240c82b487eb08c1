package redis

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
	"urlserver/internal/netguard"
)

// shards is the number of shards. The key of a queue decides the queue's shard. Most steps on a
// queue need data of its shard only, so one script handles many queues. The number is fixed, and is
// the largest number of masters of a cluster that can share the work.
const shards = 16

// shardOf returns the shard of the queues with a key, which is also the shard of the host with that
// name. A dot at the end of a host name makes no difference.
func shardOf(key string) int {
	h := fnv.New32a()
	h.Write([]byte(strings.TrimSuffix(key, ".")))
	return int(h.Sum32() % shards)
}

// op is a call of a script on a shard.
type op struct {
	shard  int
	script *script
	args   []string
}

// answer is the answer of a script.
type answer struct {
	shard    int
	value    rueidis.RedisMessage
	deferred []rueidis.RedisMessage // updates for hosts in other shards
	freed    bool                   // another queue may be served to URL Frontier clients now
	room     bool                   // the slots have room for more of a queue whose links take turns
	wrong    []string               // keys of a wrong type that the script found, each with the right type
	err      error
}

// run runs scripts in one round trip. Each has an answer or an error.
func (s *Store) run(ctx context.Context, ops []op) []answer {
	answers := make([]answer, len(ops))
	c, err := s.connected(ctx)
	if err != nil {
		for i := range answers {
			answers[i].err = err
		}
		return answers
	}
	commands, header := make([]rueidis.Completed, len(ops)), s.header()
	for i, o := range ops {
		_, sha := o.script.load()
		commands[i] = c.B().Evalsha().Sha1(sha).Numkeys(1).Key(s.bases[o.shard]).Arg(
			header...).Arg(o.args...).Build()
	}
	for i, result := range c.DoMulti(ctx, commands...) {
		answers[i] = answerOf(result)
		if isNoScript(answers[i].err) {
			o := ops[i]
			text, _ := o.script.load()
			answers[i] = answerOf(c.Do(ctx,
				c.B().Eval().Script(text).Numkeys(1).Key(s.bases[o.shard]).Arg(header...).Arg(
					o.args...).Build()))
		}
		answers[i].shard = ops[i].shard
		for j := 0; j < len(answers[i].wrong); j += 2 { // each with its type
			s.warnBroken(answers[i].wrong[j])
		}
		if err := answers[i].err; err != nil {
			answers[i].err = s.wrap(err)
		}
	}
	if slices.ContainsFunc(answers, func(a answer) bool { return a.freed }) {
		s.announce()
	}
	if slices.ContainsFunc(answers, func(a answer) bool { return a.room }) {
		s.wake()
	}
	return answers
}

// wrap returns the error of a command for callers. If Redis did not answer, or answered that it cannot
// serve the store now, it is a [docindex.ErrUnavailable].
func (s *Store) wrap(err error) error {
	if key, is := brokenKey(err); is {
		s.warnBroken(key)
		return broken(key)
	}
	hidden := netguard.Redact(err, s.cfg.Password)
	if isFull(err) {
		return fmt.Errorf(
			"the doc index in Redis is %w: give it more memory (maxmemory), or drop what is not needed: %w",
			docindex.ErrFull, hidden)
	}
	if isAway(err) {
		return fmt.Errorf("the doc index in Redis %w for now: %w", docindex.ErrUnavailable, hidden)
	}
	if _, answered := rueidis.IsRedisErr(err); answered || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the doc index in Redis: %w", hidden)
	}
	return fmt.Errorf("the doc index in Redis %w: %w", docindex.ErrUnavailable, hidden)
}

// all runs scripts and applies the updates that they return for hosts in other shards. The error
// joins the errors of the scripts.
func (s *Store) all(ctx context.Context, ops []op) ([]answer, error) {
	answers := s.run(ctx, ops)
	var errs []error
	for _, a := range answers {
		errs = append(errs, a.err)
	}
	s.sendDeferred(ctx, answers)
	return answers, joined(errs)
}

// joined joins errors. Of those with the same text it takes one: all shards fail alike as a rule.
func joined(errs []error) error {
	var different []error
	seen := map[string]bool{}
	for _, err := range errs {
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			different = append(different, err)
		}
	}
	return errors.Join(different...)
}

// one runs a script on a shard.
func (s *Store) one(ctx context.Context, shard int, script *script, args ...string) (answer, error) {
	answers, err := s.all(ctx, []op{{shard, script, args}})
	return answers[0], err
}

// everywhere runs a script on each shard.
func (s *Store) everywhere(ctx context.Context, script *script, args ...string) ([]answer, error) {
	return s.all(ctx, everyShard(script, args...))
}

func everyShard(script *script, args ...string) []op {
	ops := make([]op, shards)
	for i := range ops {
		ops[i] = op{i, script, args}
	}
	return ops
}

// header returns the arguments that each script takes first.
func (s *Store) header() []string {
	now := ""
	if s.clock != nil {
		now = decimal(s.clock())
	}
	return []string{now, s.owner, decimal(s.cfg.Lease.Milliseconds()), decimal(s.gap.Load()),
		decimal(s.places(placesOfScript)), decimal(int64(max(0, s.budgets.most().Queue)))}
}

// A place orders queues that wait for their turn. Places follow the time, with 1024 in a ms.
const (
	placesOfOne    = 2  // for one URL or queue
	placesOfScript = 64 // for the other steps of a script
)

// places returns the first of n places after all places that this daemon has given. The places of
// other daemons differ from these by as much as the clocks do.
func (s *Store) places(n int) int64 {
	for {
		last := s.place.Load()
		first := max(last+1, s.nowMS()*1024)
		if s.place.CompareAndSwap(last, first+int64(n)) {
			return first
		}
	}
}

func (s *Store) nowMS() int64 {
	if s.clock != nil {
		return s.clock() / 1000
	}
	return time.Now().UnixMilli()
}

func answerOf(result rueidis.RedisResult) (a answer) {
	values, err := result.ToArray()
	if err != nil {
		return answer{err: err}
	}
	if len(values) != 5 {
		return answer{err: errStrange}
	}
	a.value, a.freed, a.wrong, a.room = values[0], number(values[2]) == 1, texts(values[3]), number(values[4]) == 1
	a.deferred, a.err = values[1].ToArray()
	return a
}

var errStrange = errors.New("a script answers something strange: is another version of it at work there?")

// isFull reports whether Redis has no memory left. Redis refuses a script's first write that needs
// memory, so such a script has changed nothing.
func isFull(err error) bool {
	failure, ok := rueidis.IsRedisErr(err)
	return ok && strings.Contains(failure.Error(), "OOM command not allowed")
}

// isAway reports whether Redis answered that it cannot serve the store now: it loads its data, is a
// replica, misses parts of its cluster or its replicas, or cannot write its file.
func isAway(err error) bool {
	failure, ok := rueidis.IsRedisErr(err)
	if !ok {
		return false
	}
	code, _, _ := strings.Cut(failure.Error(), " ")
	switch code {
	case "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "MISCONF", "BUSY":
		return true
	}
	return false
}

func isNoScript(err error) bool {
	failure, ok := rueidis.IsRedisErr(err)
	return ok && failure.IsNoScript()
}

// list returns the parts of a message, or nil if it is no list.
func list(m rueidis.RedisMessage) []rueidis.RedisMessage {
	values, _ := m.ToArray()
	return values
}

// text returns a text or a number as scripts take it.
func text(m rueidis.RedisMessage) string {
	if m.IsInt64() {
		n, _ := m.ToInt64()
		return decimal(n)
	}
	t, _ := m.ToString()
	return t
}

// number returns a whole number. The message may have it as text.
func number(m rueidis.RedisMessage) int64 {
	if n, err := m.AsInt64(); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(text(m), 64)
	return int64(f)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func flag(is bool) string {
	if is {
		return "1"
	}
	return ""
}
