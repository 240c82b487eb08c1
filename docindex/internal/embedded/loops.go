package embedded

import (
	"context"
	"fmt"
	"sync"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// CheckLease returns an error for a lease that is not longer than nothing.
func CheckLease(lease time.Duration) error {
	if lease <= 0 {
		return fmt.Errorf("lease of %v: it has to be longer than nothing", lease)
	}
	return nil
}

// HandOut hands out up to limit documents in portions. some hands out up to ask documents; more
// reports whether it had to stop early. The store looks up rejected hosts once a portion, so a
// portion is no smaller than their list.
func HandOut(ctx context.Context, limit, rejects int, some func(ask int) (got int, more bool, err error)) error {
	for limit > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		ask := min(limit, max(LockBatch, rejects))
		got, more, err := some(ask)
		limit -= got
		if err != nil {
			return err
		}
		if got < ask && !more {
			return nil
		}
	}
	return nil
}

// InBatches calls do with the ranges of a list of n, so that each needs the lock for a short time.
func InBatches(ctx context.Context, n int, do func(from, to int) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := 0; i < n; i += LockBatch {
		if err := do(i, min(i+LockBatch, n)); err != nil {
			return err
		}
	}
	return nil
}

// List is [docindex.Frontier.List], with a store's way to list one queue.
func (b *Base) List(
	ctx context.Context, s docindex.Scope,
	queue func(id uint32) (goOn bool, err error),
) error {
	if len(s.Key) > 0 {
		_, err := queue(b.Find(s))
		return err
	}
	for id := b.NextQueue(s.Crawl, 0); id != 0; id = b.NextQueue(s.Crawl, id) {
		if goOn, err := queue(id); err != nil || !goOn {
			return err
		}
	}
	return nil
}

// ListQueue visits the documents of a queue in portions. some appends a portion from a position on
// and returns the next position; last reports whether there is none.
func ListQueue[P any](
	ctx context.Context, some func(at P, docs []docindex.Document) (_ []docindex.Document, next P,
		last bool, err error),
	visit func(*docindex.Document) bool,
) (goOn bool, err error) {
	var docs []docindex.Document
	var at P
	for last := false; !last; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if docs, at, last, err = some(at, docs[:0]); err != nil {
			return false, err
		}
		for i := range docs {
			if !visit(&docs[i]) {
				return false, nil
			}
		}
	}
	return true, nil
}

// EachQueue calls do with the queue of a scope, or with all queues of a crawl, and returns the sum.
func (b *Base) EachQueue(ctx context.Context, s docindex.Scope, do func(id uint32) (int, error)) (sum int, err error) {
	if len(s.Key) > 0 {
		return do(b.Find(s))
	}
	for id := b.NextQueue(s.Crawl, 0); id != 0; id = b.NextQueue(s.Crawl, id) {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		n, err := do(id)
		sum += n
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// maxDelay is the longest delay in seconds that the URL Frontier API can express.
const maxDelay = 1<<32 - 1

// SettingsOf converts a Setting other than SetActive.
func SettingsOf(s *docindex.Setting) (to queuesched.Settings, err error) {
	switch s.Kind {
	case docindex.SetDelay:
		delay := DueMS(int64(min(s.Value, maxDelay)))
		to.Delay = &delay
	case docindex.SetBlock:
		until := int64(0)
		if s.Value > 0 { // the second itself is blocked, too
			until = DueMS(int64(min(s.Value, queuesched.Never/1000-2)) + 1)
		}
		to.Blocked = &until
	case docindex.SetLimit:
		limit := uint32(min(s.Value, 1<<32-1))
		to.Limit = &limit
	default:
		return to, fmt.Errorf("setting %d: there is none", s.Kind)
	}
	return to, nil
}

// Serving is the state of one Serve.
type Serving struct {
	Request docindex.Request
	Cursor  queuesched.Cursor
	Out     docindex.Served // the portion; Serve gives it memory
	Until   int64           // when its leases end, ms

	given  []given // by URL of Out, if addresses count
	Recall bool    // the slots must give back documents that they have not sent

	served bool
	soon   <-chan struct{} // if nothing was served: something may be when this is closed
	wait   WaitBudget
}

// given is a URL of a portion.
type given struct {
	doc    uint32 // in Base.Leases
	charge int    // of its queue, as Cursor.Charge has it
}

// Add adds a document to the portion, which was leased until v.Until.
func (v *Serving) Add(doc uint32, url, key []byte, crawl string, packed docindex.Packed) {
	v.Out.Add(url, key, crawl, packed)
	if charge := v.Cursor.Charge(); charge >= 0 {
		v.given = append(v.given, given{doc, charge})
	}
}

// BeginPortionLocked begins a portion.
func (b *Base) BeginPortionLocked(v *Serving, now int64) {
	v.Until, v.given = LeaseEnd(now, v.Request.Lease), v.given[:0]
	b.Sched.BeginPortion(&v.Cursor)
}

// BeginServing begins a Serve, or begins it again.
func (b *Base) BeginServing(v *Serving) error {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if err := b.Body.UsableLocked(); err != nil {
		return err
	}
	now := b.Now()
	b.CatchUpAllLocked(now) // once for the whole call
	v.Recall = b.Sched.BeginsToShare(Query(&v.Request), now)
	v.Cursor = b.Sched.Begin(Query(&v.Request))
	return nil
}

// PortionDoneLocked is to be called after each portion, with whether there are more.
func (b *Base) PortionDoneLocked(v *Serving, more bool) {
	b.Sched.EndPortion(&v.Cursor)
	if !more && !v.served && v.Out.Len() == 0 && b.Sched.MayRetry(&v.Cursor) {
		v.soon = b.notifier.Next()
	}
}

// portions has portions whose memory is used again. New memory grows to the size of a portion in steps,
// which take four times its bytes.
var portions = sync.Pool{New: func() any { return new(docindex.Served) }}

// Serve is [docindex.Frontier.Serve] after BeginServing. portion fills v.Out, calls
// PortionDoneLocked, and returns after what is in v.Out is durable. give must not keep the portion.
func (b *Base) Serve(
	ctx context.Context, v *Serving, portion func() (more bool, err error), give func(*docindex.Served) error,
) error {
	memory := portions.Get().(*docindex.Served)
	v.Out = *memory
	defer func() {
		*memory, v.Out = v.Out, docindex.Served{}
		portions.Put(memory)
	}()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.Out.Reset()
		v.soon = nil
		var err error
		if more, err = portion(); err != nil {
			return err
		}
		if v.Out.Len() == 0 {
			if !more && v.wait.Wait(ctx, v.soon) {
				more, err = true, b.BeginServing(v)
			}
			if err != nil {
				return err
			}
			continue
		}
		if b.dropLate(v); v.Out.Len() == 0 {
			continue
		}
		v.served = true
		if err := give(&v.Out); err != nil {
			return err
		}
	}
	return nil
}

// dropLate drops the URLs whose address has gone to others since they were chosen: the disk was slow,
// or the process stood still. They are scheduled again at once, as if nobody had chosen them.
func (b *Base) dropLate(v *Serving) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if !b.Sched.KeepsAddresses() || len(v.given) < v.Out.Len() {
		return // or addresses count since a moment ago only
	}
	late := make([]bool, v.Cursor.Charge()+1)
	for charge := range late {
		late[charge] = b.Sched.IsLate(&v.Cursor, charge)
	}
	now, i := b.Now(), -1
	// TakeBack comes before the leases end: when the last lease at an address ends, AddressUse learns from
	// when others may ask the address, and a URL that did not leave must not count there.
	for charge := len(late) - 1; charge >= 0; charge-- {
		if late[charge] {
			b.Sched.TakeBack(&v.Cursor, charge, now)
		}
	}
	v.Out.Keep(func(*docindex.Put) bool {
		i++
		g := v.given[i]
		if late[g.charge] && b.Leases.Has(g.doc) && int64(b.Leases.Due(g.doc)) == v.Until {
			b.Body.LeaseEndedLocked(g.doc, now)
		}
		return !late[g.charge]
	})
}
