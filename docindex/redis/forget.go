package redis

import (
	"context"
	"time"

	"urlserver/docindex"
)

// Delete is [docindex.Frontier.Delete]. The queues are gone at once; their memory follows in
// portions.
func (s *Store) Delete(ctx context.Context, scope docindex.Scope) (deleted int, err error) {
	err = s.eachQueueOf(ctx, scope, func(q queueInfo) (bool, error) {
		n, err := s.deleteQueue(ctx, q)
		deleted += n
		return true, err
	})
	if err == nil && len(scope.Key) == 0 {
		err = s.deleteRounds(ctx, string(scope.Crawl))
	}
	return deleted, err
}

func (s *Store) deleteQueue(ctx context.Context, q queueInfo) (int, error) {
	var held docindex.Outcomes
	if err := s.held(ctx, q.shard, q.queue, &held); err != nil {
		return 0, err
	}
	a, err := s.one(ctx, q.shard, dropScript, q.queue)
	parts := list(a.value)
	if err != nil || len(parts) != 2 {
		return 0, err
	}
	s.tellDeleted(&held)
	s.giveBack(&held)
	return int(number(parts[0])), s.free(ctx, q.shard, text(parts[1]))
}

// free forgets the documents of a dropped queue.
func (s *Store) free(ctx context.Context, shard int, queue string) error {
	for cursor := "0"; ; {
		a, err := s.one(ctx, shard, freeScript, queue, cursor)
		parts := list(a.value)
		if err != nil || len(parts) != 2 {
			return err
		}
		var spare []givenDocID
		for m := list(parts[1]); len(m) >= 2; m = m[2:] {
			spare = append(spare, givenDocID{text(m[0]), decode(text(m[1]))})
		}
		if err := s.releaseDocIDs(ctx, spare); err != nil {
			return err
		}
		if cursor = text(parts[0]); cursor == "0" {
			return nil
		}
	}
}

// Purge is [docindex.Frontier.Purge].
func (s *Store) Purge(ctx context.Context, scope docindex.Scope, before time.Time) (purged int, err error) {
	err = s.eachQueueOf(ctx, scope, func(q queueInfo) (bool, error) {
		n, err := s.purgeQueue(ctx, q, before)
		purged += n
		return true, err
	})
	return purged, err
}

func (s *Store) purgeQueue(ctx context.Context, q queueInfo, before time.Time) (purged int, err error) {
	for cursor := "0"; ; {
		if err := ctx.Err(); err != nil {
			return purged, err
		}
		a, err := s.one(ctx, q.shard, purgeScript, q.queue, cursor, decimal(before.Unix()))
		parts := list(a.value)
		if err != nil || len(parts) != 4 {
			return purged, err
		}
		purged += int(number(parts[1]))
		var held docindex.Outcomes
		s.addHeld(&held, q.shard, parts[2])
		s.giveBack(&held)
		var spare []givenDocID
		for m := list(parts[3]); len(m) >= 2; m = m[2:] {
			spare = append(spare, givenDocID{text(m[0]), decode(text(m[1]))})
		}
		if err := s.releaseDocIDs(ctx, spare); err != nil {
			return purged, err
		}
		if cursor = text(parts[0]); cursor == "0" {
			return purged, nil
		}
	}
}
