// Package embedded is what the stores in memory and on disk have in common: clock, lock, hooks,
// listings and loops around a scheduler of package queuesched. A store adds where its documents are
// kept. The store in Redis uses parts of it.
package embedded

import (
	"context"
	"math"
	"time"

	"urlserver/docindex/internal/queuesched"

	"urlserver/docindex"
)

// VisitQueues calls visit with the keys that some yields. some yields the keys of queues from a
// number on and returns the number to continue with, or 0.
func VisitQueues(
	ctx context.Context, some func(from uint32, add func(key []byte, idle bool)) (next uint32, err error),
	visit func(key []byte, idle bool) bool,
) error {
	type seen struct {
		end  int // of the key in keys
		idle bool
	}
	var keys []byte
	var list []seen
	for next := uint32(1); next != 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		keys, list = keys[:0], list[:0]
		var err error
		if next, err = some(next, func(key []byte, idle bool) {
			keys = append(keys, key...)
			list = append(list, seen{len(keys), idle})
		}); err != nil {
			return err
		}
		begin := 0
		for _, q := range list {
			if !visit(keys[begin:q.end], q.idle) {
				return nil
			}
			begin = q.end
		}
	}
	return nil
}

// WaitBudget bounds how long a Serve waits that finds nothing only because other calls have the
// URLs or queues that it could get. Clients call again as soon as they have reported their URLs,
// and their reports are stored a moment later: after an empty answer they would wait much longer.
// The zero value is ready.
type WaitBudget struct{ end <-chan time.Time }

const waitBudget = 50 * time.Millisecond

// Wait waits until soon is closed or ctx ends. False: the budget is used up, or soon is nil and
// there is nothing to wait for.
func (p *WaitBudget) Wait(ctx context.Context, soon <-chan struct{}) bool {
	if soon == nil {
		return false
	}
	if p.end == nil {
		p.end = time.After(waitBudget)
	}
	select {
	case <-soon:
		return true
	case <-ctx.Done():
		return true
	case <-p.end:
		return false
	}
}

// Notifier wakes all who wait. Its user guards it with a lock. The zero value is ready.
type Notifier struct{ rung chan struct{} }

// Next returns a channel that the next Broadcast closes.
func (b *Notifier) Next() <-chan struct{} {
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

// Broadcast wakes those who wait.
func (b *Notifier) Broadcast() {
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// CountsOf returns the counts of a queue or crawl, or of all queues if s is nil.
func CountsOf(d *queuesched.Scheduler, s *docindex.Scope) docindex.Counts {
	n := queuesched.Counts{}
	switch {
	case s == nil:
		n = d.Total()
	case len(s.Key) == 0:
		n = d.CrawlTotal(s.Crawl)
	default:
		if id := d.Find(s.Crawl, s.Key); id != 0 {
			n = d.QueueTotal(id)
		}
	}
	return docindex.Counts{
		Scheduled: n.URLs[docindex.Scheduled], InTransit: n.URLs[docindex.InTransit],
		Completed: n.URLs[docindex.Completed],
		Queues:    n.Queues, Active: n.Active,
	}
}

// Query converts a request for the scheduler.
func Query(r *docindex.Request) queuesched.Query {
	return queuesched.Query{Crawl: r.Crawl, Key: r.Key, AnyCrawl: r.AnyCrawl, PerQueue: r.PerQueue,
		MaxQueues: r.MaxQueues}
}

// CreatedAt returns when a document was first put, in seconds since 1970. given is Put.Created, now
// is in ms.
func CreatedAt(given, now int64) uint32 {
	if given == 0 {
		given = now / 1000
	}
	return uint32(max(0, min(given, math.MaxUint32)))
}

// MaxStopped is how many stopped crawls a store keeps.
const MaxStopped = 1_000_000
