package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// errBroken is in errors of calls that need a key which somebody else has written.
var errBroken = errors.New("a key is of a wrong type")

const (
	brokenAgain = time.Hour // between two warnings of one key
	brokenMost  = 10_000    // keys whose last warning is remembered
	brokenAbout = "docindex.prefix keeps two programs apart; delete the key (DEL), and the daemon puts " +
		"back what can be derived of it"
)

// brokenKey returns the key of a wrong type that made a script fail. ok is false for any other
// error.
func brokenKey(err error) (key string, ok bool) {
	failure, answered := rueidis.IsRedisErr(err)
	if !answered {
		return "", false
	}
	return strings.CutPrefix(failure.Error(), "BROKEN ")
}

// isWrongType reports whether a command met a key of another type.
func isWrongType(err error) bool {
	failure, answered := rueidis.IsRedisErr(err)
	return answered && strings.HasPrefix(failure.Error(), "WRONGTYPE ")
}

func broken(key string) error {
	return fmt.Errorf("the doc index in Redis: %w: %s; %s", errBroken, key, brokenAbout)
}

// warnBroken logs that a key is of a wrong type, once in brokenAgain.
func (s *Store) warnBroken(key string) {
	now := time.Now()
	s.mu.Lock()
	last, known := s.warned[key]
	if known = known && now.Sub(last) < brokenAgain; !known {
		if len(s.warned) >= brokenMost {
			clear(s.warned)
		}
		s.warned[key] = now
	}
	s.mu.Unlock()
	if !known {
		s.cfg.Log.Warn().Str("key",
			key).Msg("the doc index in Redis: a key is of a wrong type, and what it stands for is not " +
			"served; " + brokenAbout)
	}
}

// unbroken is like all, but a script that failed because of a broken key has an empty answer and no
// error. The log has named the key.
func (s *Store) unbroken(ctx context.Context, ops []op) ([]answer, error) {
	answers, _ := s.all(ctx, ops)
	var errs []error
	for i, a := range answers {
		if errors.Is(a.err, errBroken) {
			answers[i].err = nil
		}
		errs = append(errs, answers[i].err)
	}
	return answers, joined(errs)
}

// mend restores a key that was of a wrong type and has been deleted, as far as other keys have its content.
func (s *Store) mend(ctx context.Context, shard int, key string) error {
	kind, name, _ := strings.Cut(strings.TrimPrefix(key, s.bases[shard]+":"), ":")
	var err error
	switch kind {
	case "b", "s", "u":
		err = s.mendQueue(ctx, shard, name, true)
	case "r", "r1", "w1", "w2", "p", "y", "c", "crawls", "names", "i1", "i2":
		err = s.mendQueues(ctx, shard, false, nil)
	case "h":
		err = s.mendQueues(ctx, shard, false, func(host string) bool { return host == name })
	case "l", "o":
		err = s.mendQueues(ctx, shard, true, func(string) bool { return true })
	case "a", "kn":
		err = s.mendQueues(ctx, shard, true, nil)
	case "k":
		if name == "" {
			err = s.mendQueues(ctx, shard, true, nil)
		}
	}
	if err == nil && (kind == "ke" || kind == "kf" || kind == "kn" || kind == "k") {
		err = s.mendPages(ctx, shard, nil, "ends")
	}
	if err == nil {
		_, err = s.one(ctx, shard, mendScript, "done", key)
	}
	return err
}

// mendPages runs a part of the script page by page. each gets the values of a page without the cursor.
func (s *Store) mendPages(ctx context.Context, shard int, each func([]rueidis.RedisMessage), args ...string) error {
	for cursor := "0"; ; {
		a, err := s.one(ctx, shard, mendScript, append(args[:len(args):len(args)], cursor)...)
		parts := list(a.value)
		if err != nil || len(parts) == 0 {
			return err
		}
		if each != nil && len(parts) > 1 {
			each(list(parts[1]))
		}
		if cursor = text(parts[0]); cursor == "0" {
			return nil
		}
	}
}

func (s *Store) mendQueue(ctx context.Context, shard int, queue string, deep bool) error {
	return s.mendPages(ctx, shard, nil, "queue", queue, flag(deep))
}

// mendQueues restores what other keys of a shard have of its queues, such as their places in rings.
// If deep is true, it also restores that of their documents. It restores the hosts for which wanted
// returns true.
func (s *Store) mendQueues(ctx context.Context, shard int, deep bool, wanted func(host string) bool) error {
	a, err := s.one(ctx, shard, mendScript, "crawls")
	parts := list(a.value)
	if err != nil || len(parts) != 2 {
		return err
	}
	sources := []string{"names"}
	for _, crawl := range texts(parts[1]) {
		sources = append(sources, "c:"+crawl)
	}
	queues, hosts := map[string]bool{}, map[string][]string{}
	for _, source := range sources {
		err := s.mendPages(ctx, shard, func(m []rueidis.RedisMessage) {
			for ; len(m) >= 2; m = m[2:] {
				queue, host := text(m[0]), text(m[1])
				if !queues[queue] && wanted != nil && wanted(host) {
					hosts[host] = append(hosts[host], queue)
				}
				queues[queue] = true
			}
		}, "list", source)
		if err != nil {
			return err
		}
	}
	for queue := range queues {
		if err := s.mendQueue(ctx, shard, queue, deep); err != nil {
			return err
		}
	}
	for host, queues := range hosts {
		if _, err := s.one(ctx, shard, mendScript, append([]string{"host", host}, queues...)...); err != nil {
			return err
		}
	}
	return nil
}
