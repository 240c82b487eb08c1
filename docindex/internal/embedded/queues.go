// Package embedded holds what the stores of this project have in common: each keeps its queues in a
// scheduler of package queuesched.
package embedded

import (
	"context"
	"math"
	"time"

	"urlserver/docindex/internal/queuesched"

	"urlserver/docindex"
)

// VisitQueues visits what some calls back with, which are keys of queues from a number on; it returns the number to
// go on with, or 0.
func VisitQueues(
	ctx context.Context, some func(from uint32, add func(key []byte, idle bool)) (next uint32), visit func(key []byte, idle bool) bool,
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
		next = some(next, func(key []byte, idle bool) {
			keys = append(keys, key...)
			list = append(list, seen{len(keys), idle})
		})
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

// WaitBudget is that of a Serve which finds nothing only because others hold what it could have. Clients ask again at
// once when they have reported what they got, and their reports are stored a moment later: an empty answer would have
// them wait for much longer than that. The zero value is ready.
type WaitBudget struct{ end <-chan time.Time }

const waitBudget = 50 * time.Millisecond

// Wait waits until soon is closed or ctx ends; false says that it has been too long, or that there is nothing to wait
// for since soon is nil.
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

// Notifier tells all who wait of news. Its user guards it with a lock. The zero value is ready.
type Notifier struct{ rung chan struct{} }

// Next is closed when the bell rings next.
func (b *Notifier) Next() <-chan struct{} {
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

// Broadcast tells those who wait.
func (b *Notifier) Broadcast() {
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// CountsOf are the counts of a queue or crawl; of all where s is nil.
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
		Scheduled: n.URLs[docindex.Scheduled], InTransit: n.URLs[docindex.InTransit], Completed: n.URLs[docindex.Completed],
		Queues: n.Queues, Active: n.Active,
	}
}

// Query is a request as the doors have it.
func Query(r *docindex.Request) queuesched.Query {
	return queuesched.Query{Crawl: r.Crawl, Key: r.Key, AnyCrawl: r.AnyCrawl, PerQueue: r.PerQueue, MaxQueues: r.MaxQueues}
}

// CreatedAt is when a document was put first, as stores keep it: seconds since 1970; given is the Put's, now in ms.
func CreatedAt(given, now int64) uint32 {
	if given == 0 {
		given = now / 1000
	}
	return uint32(max(0, min(given, math.MaxUint32)))
}

// MaxStopped is how many crawls a store refuses at most.
const MaxStopped = 1_000_000
