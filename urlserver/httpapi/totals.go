package httpapi

import (
	"sync"
	"sync/atomic"
)

// totals counts the documents of the embedded index. Safe for concurrent use.
type totals struct {
	store Store // nil: there is none
	last  atomic.Pointer[IndexTotals]
	asked sync.Mutex // held while the store is asked in the background
}

// fresh asks the store, which takes a while where it runs elsewhere. It returns nil without a
// store.
func (t *totals) fresh() *IndexTotals {
	if t.store == nil {
		return nil
	}
	n := t.store.Stats()
	now := &IndexTotals{Scheduled: n.Scheduled, InTransit: n.InTransit, Completed: n.Completed}
	t.last.Store(now)
	return now
}

// recent returns what the store said last, and asks it again in the background: a store that does
// not answer holds up nobody. It returns nil without a store, and before the first answer.
func (t *totals) recent() *IndexTotals {
	if t.store != nil && t.asked.TryLock() {
		go func() {
			defer t.asked.Unlock()
			t.fresh()
		}()
	}
	return t.last.Load()
}
