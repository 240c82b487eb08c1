package redis

import (
	"context"
	"errors"

	"urlserver/docindex"
)

const purgeLooks = 500 // documents that a script looks at

// PurgeCrawl is [docindex.Crawls.PurgeCrawl]. At the slots is what this daemon has; Overdue has other daemons purge theirs.
func (s *Store) PurgeCrawl(ctx context.Context, id docindex.CrawlID, tell func(*docindex.Outcomes) error) (purged int, err error) {
	name := nameOfCrawl(id)
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
		err := s.eachHeld(ctx, shard, "", name, func(some *docindex.Outcomes) error {
			var out docindex.Outcomes
			for i := range some.Len() {
				one := some.At(i)
				one.Kind = rows[0].kind()
				out.Add(one)
			}
			return tell(&out)
		})
		if err != nil {
			return 0, err
		}
	}
	s.mu.Lock()
	s.stopped[name] = false
	s.mu.Unlock()
	answers, err := s.atHome(ctx, name, func(home string) op { return op{script: purgedScript, args: []string{name, home}} })
	for _, a := range answers {
		if parts := list(a.value); len(parts) == 1 {
			purged += int(number(parts[0]))
		}
	}
	return purged, err
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
		a, err := s.one(ctx, shard, condemnScript, append([]string{name, decimal(purgeLooks), due, last}, queues...)...)
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
			return s.Refuse(ctx, r.CrawlID, r.kind())
		}
	}
	return nil
}
