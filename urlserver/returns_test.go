package urlserver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// refusing is a store that refuses returned documents while refuse is set.
type refusing struct {
	docindex.Store
	refuses atomic.Bool
	asked   atomic.Int32 // requests for candidates
	returns atomic.Int32 // calls of Return
}

func (r *refusing) Candidates(ctx context.Context, max int, reject []string, b *docindex.Batch) error {
	r.asked.Add(1)
	return r.Store.Candidates(ctx, max, reject, b)
}

func (r *refusing) Return(ctx context.Context, o *docindex.Outcomes) error {
	r.returns.Add(1)
	if r.refuses.Load() {
		return errIndex
	}
	return r.Store.Return(ctx, o)
}

// leftBehind starts a daemon with a store that refuses three returned documents that a spider had.
func leftBehind(t *testing.T) (*bubble, *refusing) {
	store := &refusing{Store: memory.New()}
	put(t, store, "http://10.0.0.1/a", "http://10.0.0.1/b", "http://10.0.0.2/c")
	b := (&bubble{t: t}).start(func(c *configs.Config) {
		c.Frontier.Listen = "127.0.0.1:0" // nobody listens here; the daemon is told only
		c.ReqHostPerSec = 0.001
		c.DocIndex.Retry, c.DocIndex.MaxRetry = second, 8*second
	}, Parts{Index: store, Store: store})
	s := b.spider()
	time.Sleep(second) // a spider that may still say SPIDER gets nothing at first
	synctest.Wait()
	if n := store.Stats().InTransit; n != 3 {
		t.Fatalf("%d documents are taken; want 3", n)
	}
	store.refuses.Store(true)
	s.conn.Close()
	synctest.Wait()
	return b, store
}

func TestReturnsAreKeptUntilTheIndexTakesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := leftBehind(t)
		asked := store.asked.Load()
		other := b.spider() // so that candidates are wanted
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := store.returns.Load(); n < 9 || n > 12 { // at 0, 1, 3, 7, 15, 23 ... 55 s
			t.Errorf("returned %d times in a minute; want a growing pause up to 8 s between them", n)
		}
		if n := store.asked.Load(); n > asked+1 {
			t.Errorf("asked for candidates %d times while documents could not be returned", n-asked)
		}
		if reasons := b.d.Ready(t.Context()); len(reasons) == 0 {
			t.Error("the daemon is ready; want it to say that documents cannot be returned")
		}
		store.refuses.Store(false)
		for range 3 {
			trans, _ := other.line()
			other.say("%s DONE 200", trans)
		}
		synctest.Wait()
		if st := store.Stats(); st.Completed != 3 {
			t.Errorf("the store has %+v; want all three completed", st)
		}
		if reasons := b.d.Ready(t.Context()); len(reasons) != 0 {
			t.Errorf("not ready: %q", reasons)
		}
		b.stopped()
	})
}

func TestStopReturnsDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := leftBehind(t)
		time.Sleep(7500 * time.Millisecond)
		store.refuses.Store(false)
		took, err := b.stop()
		if st := store.Stats(); took != 0 || err != nil || st.Scheduled != 3 {
			t.Errorf("stop took %v: %v, and the store has %+v; want the documents returned at once", took, err, st)
		}
	})
}

func TestStopTellsOfDocumentsThatCannotBeReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := leftBehind(t)
		if took, err := b.stop(); took != stopWait || !errors.Is(err, errUndelivered) {
			t.Errorf("stop took %v: %v; want %v and to be told", took, err, stopWait)
		}
	})
}
