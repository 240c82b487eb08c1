package disk

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// eachQueue calls do with the numbers on disk of the queues of a scope, in order, without the lock.
func (s *Store) eachQueue(
	ctx context.Context, scope docindex.Scope, do func(no uint32) (goOn bool, err error),
) error {
	if len(scope.Key) > 0 {
		no, err := s.findNo(scope)
		if err == nil && no != 0 {
			_, err = do(no)
		}
		return err
	}
	for next := uint32(1); next != 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var nos []uint32
		var err error
		next, err = s.someQueues(scope.Crawl, next, func(no uint32, _ *queueRecord) { nos = append(nos, no) })
		if err != nil {
			return err
		}
		for _, no := range nos {
			if err := ctx.Err(); err != nil {
				return err
			}
			if goOn, err := do(no); err != nil || !goOn {
				return err
			}
		}
	}
	return nil
}

// findNo returns the number on disk of the queue of a scope with a key, or 0.
func (s *Store) findNo(scope docindex.Scope) (no uint32, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.db.usable(); err != nil {
		return 0, err
	}
	if id := s.base.Sched.Find(scope.Crawl, scope.Key); id != 0 {
		no = s.queues.at(id).no
	}
	return no, s.db.failed
}

const maxSome = 10_000 // numbers of queues that one call looks at; it holds the lock

// someQueues visits some queues of a crawl in the order of their numbers, from a number on, with
// the lock held. It returns the number to continue with, or 0.
func (s *Store) someQueues(
	crawl []byte, from uint32, visit func(no uint32, q *queueRecord),
) (next uint32, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.db.usable(); err != nil {
		return 0, err
	}
	next, err = s.queues.cold.someRows(crawl, from, visit)
	if err != nil {
		return 0, s.db.fail(err)
	}
	return next, nil
}

// someRows visits the rows of some queues of a crawl. It returns the number to continue with, or 0.
func (c *coldQueues) someRows(
	crawlID []byte, from uint32, visit func(no uint32, q *queueRecord),
) (next uint32, err error) {
	crawl, ok := c.sched.FindCrawl(crawlID)
	if !ok {
		return 0, nil
	}
	if next = from + maxSome; next < from || next > c.table.globals.queueNo {
		next = 0
	}
	end := cmp.Or(next, math.MaxUint32)
	rows, err := c.db.NewIter(&pebble.IterOptions{
		LowerBound: numberKey(queueRow, from), UpperBound: numberKey(queueRow, end)})
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	fresh, err := c.db.NewIter(&pebble.IterOptions{
		LowerBound: freshKey(crawl, from), UpperBound: freshKey(crawl, end)})
	if err != nil {
		return 0, err
	}
	defer fresh.Close()
	rows.First()
	fresh.First()
	for rows.Valid() || fresh.Valid() {
		it := rows
		if !rows.Valid() || fresh.Valid() && lastNumber(fresh.Key()) < lastNumber(rows.Key()) {
			it = fresh
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return 0, err
		}
		q, err := readQueue(value)
		if err != nil {
			return 0, err
		}
		if string(q.crawl) == string(crawlID) {
			visit(lastNumber(it.Key()), &q)
		}
		it.Next()
	}
	return next, errors.Join(rows.Error(), fresh.Error())
}

// lastNumber returns the number at the end of the key of a queue's row.
func lastNumber(key []byte) uint32 { return binary.BigEndian.Uint32(key[len(key)-4:]) }

// Queues is [docindex.Frontier.Queues].
func (s *Store) Queues(ctx context.Context, crawl []byte, visit func(key []byte, idle bool) bool) error {
	return embedded.VisitQueues(ctx, func(from uint32, add func(key []byte, idle bool)) (uint32, error) {
		return s.someQueues(crawl, from, func(no uint32, q *queueRecord) {
			now := s.base.Now()
			idle := q.Scheduled == 0 || q.Blocked > now
			if id := s.queues.byNumber(no); id != 0 {
				idle = s.base.Sched.Idle(id, now)
			}
			add(q.key, idle)
		})
	}, visit)
}
