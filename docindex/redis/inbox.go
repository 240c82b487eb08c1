package redis

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// OnStop registers cancel. It is called with documents in this daemon's slots whose crawl another
// daemon stopped or found expired. It ends them and returns how many will not be sent.
func (s *Store) OnStop(cancel func(context.Context, *docindex.Outcomes) (ended int, err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = cancel
}

// notifyInbox wakes processInbox, which then reads the notifications of other daemons.
func (s *Store) notifyInbox() {
	select {
	case s.inbox <- struct{}{}:
	default:
	}
}

// processInbox handles notifications from other daemons until ctx ends. Those that fail stay in
// Redis, and the heartbeat finds them.
func (s *Store) processInbox(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.inbox:
			s.processInboxOnce(ctx)
		}
	}
}

func (s *Store) processInboxOnce(ctx context.Context) {
	answers, err := s.unbroken(ctx, everyShard(inboxScript))
	if err != nil {
		return
	}
	for _, a := range answers {
		for more := true; more && ctx.Err() == nil; {
			more, a = s.processShardInbox(ctx, a)
		}
	}
}

// processShardInbox handles the notifications in a shard's answer. It returns the next answer, and
// whether that may have more.
func (s *Store) processShardInbox(ctx context.Context, a answer) (more bool, next answer) {
	parts := list(a.value)
	if a.err != nil || len(parts) != 2 {
		return false, a
	}
	s.mu.Lock()
	cancel := s.cancel
	s.mu.Unlock()
	if names := texts(parts[0]); len(names) > 0 && cancel != nil {
		atSlots := func(o *docindex.Outcomes) (int, error) { return cancel(ctx, o) }
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
	next, err := s.one(ctx, a.shard, inboxScript, forgotten...)
	return err == nil, next
}

func texts(m rueidis.RedisMessage) (all []string) {
	for _, one := range list(m) {
		all = append(all, text(one))
	}
	return all
}

// forgetHere removes documents from the slots that other daemons have deleted. If a DOC_ID was
// given to a new document that came to the slots before this notification, the slots may drop the
// new one: it is returned.
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

// listen subscribes to the channels of all shards and notifies the inbox, until ctx ends.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if c, err := s.connected(ctx); err == nil {
			var channels []string
			for _, base := range s.bases {
				channels = append(channels, base+":hint")
			}
			_ = c.Receive(ctx, c.B().Subscribe().Channel(channels...).Build(),
				func(rueidis.PubSubMessage) { s.notifyInbox() })
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDial):
		}
	}
}
