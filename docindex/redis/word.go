package redis

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// OnStop has condemn called with documents that this daemon's slots have of crawls that others stopped, or that expired at others. It ends
// them, and answers how many will not be sent.
func (s *Store) OnStop(condemn func(context.Context, *docindex.Outcomes) (ended int, err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.condemn = condemn
}

// leaveWord has this daemon look whether others have left word for it.
func (s *Store) leaveWord() {
	select {
	case s.word <- struct{}{}:
	default:
	}
}

// heed does what others have left word of, until ctx ends. What goes wrong stays there, for when the beat finds it.
func (s *Store) heed(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.word:
			s.heedOnce(ctx)
		}
	}
}

func (s *Store) heedOnce(ctx context.Context) {
	answers, err := s.unbroken(ctx, everyShard(wordScript))
	if err != nil {
		return
	}
	for _, a := range answers {
		for more := true; more && ctx.Err() == nil; {
			more, a = s.heedShard(ctx, a)
		}
	}
}

// heedShard does what a shard has word of, and answers whether there is more of it.
func (s *Store) heedShard(ctx context.Context, a answer) (more bool, next answer) {
	parts := list(a.value)
	if a.err != nil || len(parts) != 2 {
		return false, a
	}
	s.mu.Lock()
	condemn := s.condemn
	s.mu.Unlock()
	if names := texts(parts[0]); len(names) > 0 && condemn != nil {
		atSlots := func(o *docindex.Outcomes) (int, error) { return condemn(ctx, o) }
		if s.endHere(ctx, a.shard, "", names, atSlots) != nil {
			return false, a
		}
		more = true
	}
	forgotten := texts(parts[1])
	if len(forgotten) > 0 {
		if s.forgetHere(ctx, a.shard, forgotten) != nil {
			return false, a
		}
		more = true
	}
	if !more {
		return false, a
	}
	next, err := s.one(ctx, a.shard, wordScript, forgotten...)
	return err == nil, next
}

func texts(m rueidis.RedisMessage) (all []string) {
	for _, one := range list(m) {
		all = append(all, text(one))
	}
	return all
}

// forgetHere has the slots forget documents that others have deleted. One whose DOC_ID has been given again since, and that came to the
// slots before they heard of this, they may have taken for the old one: so it is given back.
func (s *Store) forgetHere(ctx context.Context, shard int, told []string) error {
	var all, given docindex.Outcomes
	for _, one := range told {
		queue, rest, _ := strings.Cut(one, ":")
		if len(rest) < hashBytes {
			continue
		}
		id, url, _ := strings.Cut(rest[hashBytes:], "\x00")
		doc := s.heldOf(shard, queue, rest[:hashBytes], id, url)
		if all.Add(doc); id != "" {
			given.Add(doc)
		}
	}
	s.tellDeleted(&all)
	return s.Return(ctx, &given)
}

// listen hears at once that others have left word, where that comes through, until ctx ends.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if c, err := s.connected(ctx); err == nil {
			var channels []string
			for _, base := range s.bases {
				channels = append(channels, base+":hint")
			}
			_ = c.Receive(ctx, c.B().Subscribe().Channel(channels...).Build(), func(rueidis.PubSubMessage) { s.leaveWord() })
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDial):
		}
	}
}
