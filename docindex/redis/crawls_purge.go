package redis

import (
	"context"
	"errors"
	"time"

	"urlserver/docindex"
)

const (
	purgeLooks = 500                   // documents that a script looks at
	othersWait = 5 * time.Second       // a frozen daemon delays an answer so long
	othersLook = 50 * time.Millisecond // between two looks whether others have ended theirs
)

// PurgeCrawl is [docindex.Crawls.PurgeCrawl]. Other daemons end what their slots have: it waits for that, for some seconds at most, and
// counts it. What they end later is told to who asks again.
func (s *Store) PurgeCrawl(ctx context.Context, id docindex.CrawlID, atSlots func(*docindex.Outcomes) (int, error)) (purged int, err error) {
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

// isPurging says that a crawl's purge is under way here, or about to be.
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

// purged counts what has ended of a crawl, once all slots have ended theirs or that has been waited for.
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

// endHere ends what this daemon's slots have of crawls, of a shard. They were refused with kind; "": as the shard has it.
func (s *Store) endHere(ctx context.Context, shard int, kind string, names []string, atSlots func(*docindex.Outcomes) (int, error)) error {
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

// endSlots has the slots end documents of refused crawls, and counts those of which they say so.
func (s *Store) endSlots(ctx context.Context, shard int, names []string, some []docindex.Outcomes, last bool, atSlots func(*docindex.Outcomes) (int, error)) (err error) {
	var args []string
	for i, name := range names {
		ended := 0
		if some[i].Len() > 0 && err == nil {
			ended, err = atSlots(&some[i])
		}
		if all := last && err == nil; ended > 0 || all {
			args = append(args, name, decimal(int64(ended)), flag(all))
		}
	}
	if len(args) == 0 {
		return err
	}
	_, err2 := s.one(context.WithoutCancel(ctx), shard, endedScript, args...) // what has ended is counted
	return errors.Join(err, err2)
}

// purgeShard ends what a shard has scheduled of a refused crawl.
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

// refuseAgain has shards refuse a crawl that have lost that, as they do when they fail over to what they had before.
func (s *Store) refuseAgain(ctx context.Context, r *row) error {
	for i := range r.parts {
		if !r.parts[i].refused {
			return s.StopCrawl(ctx, r.CrawlID, r.kind())
		}
	}
	return nil
}
