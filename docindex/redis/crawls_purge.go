package redis

import (
	"context"
	"errors"
	"time"

	"urlserver/docindex"
)

const (
	purgeLooks = 500                   // documents that one script run looks at
	othersWait = 5 * time.Second       // longest wait for other daemons; a frozen one delays a purge this long
	othersLook = 50 * time.Millisecond // pause between two checks whether the others have finished
)

// PurgeCrawl is [docindex.Crawls.PurgeCrawl]. Other daemons end the documents in their slots.
// PurgeCrawl waits for them, for at most othersWait, and counts the documents that they ended. A
// later PurgeCrawl counts those that they ended after that.
func (s *Store) PurgeCrawl(ctx context.Context, id docindex.CrawlID,
	atSlots func(*docindex.Outcomes) (int, error)) (purged int, err error) {
	name := nameOfCrawl(id)
	defer s.setPurging(name, false)
	rows, err := s.rowsOf(ctx, []string{name}, false)
	if err != nil || rows[0].why == "" {
		return 0, err
	}
	if err := s.refuseAgain(ctx, &rows[0]); err != nil {
		return 0, err
	}
	for shard := range shards {
		if rows[0].parts[shard].counts[countLined] > 0 {
			if err := s.purgeShard(ctx, shard, name); err != nil {
				return 0, err
			}
		}
	}
	for shard := range shards {
		if err := s.endHere(ctx, shard, rows[0].why, []string{name}, atSlots); err != nil {
			return 0, err
		}
	}
	if _, err := s.one(ctx, homeOf(name), throughScript, name); err != nil {
		return 0, err
	}
	return s.purged(ctx, name)
}

// isPurging reports whether this daemon is purging a crawl, or has stopped it and will purge it
// next.
func (s *Store) isPurging(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.purging[name]
}

func (s *Store) setPurging(name string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.purging, name); is {
		s.purging[name] = true
	}
}

// purged returns how many documents of a crawl have ended and are not reported. Before that it
// waits until no daemon has any in its slots, or s.others has passed.
func (s *Store) purged(ctx context.Context, name string) (n int, err error) {
	for end := time.Now().Add(s.others); ; {
		answers, err := s.everywhere(ctx, purgedScript, name)
		if err != nil {
			return 0, err
		}
		n, busy := 0, false
		for _, a := range answers {
			parts := list(a.value)
			if len(parts) != 2 {
				return 0, errStrange
			}
			n += int(number(parts[0]))
			busy = busy || number(parts[1]) == 1
		}
		if !busy || !time.Now().Before(end) {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(othersLook):
		}
	}
}

// endHere ends the documents of stopped crawls that are in this daemon's slots and belong to a
// shard. kind is the outcome that the crawls were stopped with; "" means the one that the shard
// has.
func (s *Store) endHere(ctx context.Context, shard int, kind string, names []string,
	atSlots func(*docindex.Outcomes) (int, error)) error {
	for cursor := "0"; ; {
		a, err := s.one(ctx, shard, mineScript, append([]string{cursor, kind}, names...)...)
		if err != nil {
			return err
		}
		parts := list(a.value)
		if len(parts) != 3 || len(list(parts[1])) != len(names) {
			return errStrange
		}
		cursor = text(parts[0])
		some := make([]docindex.Outcomes, len(names))
		whys := list(parts[1])
		for m := list(parts[2]); len(m) >= 5; m = m[5:] {
			which := number(m[0]) - 1
			one := s.heldOf(shard, text(m[1]), text(m[2]), text(m[3]), text(m[4]))
			one.Kind = docindex.Kind(number(whys[which]))
			some[which].Add(one)
		}
		if err := s.endSlots(ctx, shard, names, some, cursor == "0", atSlots); err != nil || cursor == "0" {
			return err
		}
	}
}

// endSlots passes documents of stopped crawls to atSlots, and records in the shard how many the
// slots ended.
func (s *Store) endSlots(ctx context.Context, shard int, names []string, some []docindex.Outcomes,
	last bool, atSlots func(*docindex.Outcomes) (int, error)) (err error) {
	var args []string
	for i, name := range names {
		ended := 0
		if some[i].Len() > 0 && err == nil {
			ended, err = atSlots(&some[i])
			s.released(&some[i])
		}
		if all := last && err == nil; ended > 0 || all {
			args = append(args, name, decimal(int64(ended)), flag(all))
		}
	}
	if len(args) == 0 {
		return err
	}
	// the documents have ended, so they must be counted
	_, err2 := s.one(context.WithoutCancel(ctx), shard, endedScript, args...)
	return errors.Join(err, err2)
}

// purgeShard ends a stopped crawl's scheduled documents in one shard.
func (s *Store) purgeShard(ctx context.Context, shard int, name string) error {
	for cursor := "0"; ; {
		a, err := s.one(ctx, shard, membersScript, name, cursor)
		parts := list(a.value)
		if err != nil || len(parts) != 2 {
			return err
		}
		var queues []string
		for _, m := range list(parts[1]) {
			queues = append(queues, text(m))
		}
		if err := s.purgeQueues(ctx, shard, name, queues); err != nil {
			return err
		}
		if cursor = text(parts[0]); cursor == "0" {
			return nil
		}
	}
}

func (s *Store) purgeQueues(ctx context.Context, shard int, name string, queues []string) error {
	for due, last := "", ""; len(queues) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, err := s.one(ctx, shard, cancelScript, append([]string{name, decimal(purgeLooks), due, last}, queues...)...)
		if err != nil {
			return err
		}
		parts := list(a.value)
		switch {
		case len(parts) == 0:
			return errRefusalLost
		case len(parts) != 3 || number(parts[0]) > int64(len(queues)):
			return errStrange
		}
		queues, due, last = queues[number(parts[0]):], text(parts[1]), text(parts[2])
	}
	return nil
}

var errRefusalLost = errors.New("the doc index in Redis has lost a crawl's refusal; purge it again")

// refuseAgain stops a crawl again in shards that have lost the refusal. A fail-over to a replica
// that was behind loses it.
func (s *Store) refuseAgain(ctx context.Context, r *row) error {
	for i := range r.parts {
		if !r.parts[i].refused {
			return s.StopCrawl(ctx, r.CrawlID, r.kind())
		}
	}
	return nil
}
