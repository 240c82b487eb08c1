package scoped

import (
	"context"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// countedReads is a store of several daemons that counts how often it is asked for settings.
type countedReads struct {
	docindex.Store
	n int
}

func (c *countedReads) OnStop(func(context.Context, *docindex.Outcomes) (int, error)) {}

func (c *countedReads) CrawlSettings(ctx context.Context, since uint64, f func(string, []byte)) (uint64, error) {
	c.n++
	return c.Store.CrawlSettings(ctx, since, f)
}

// TestTimeOfDaySetBack: settings are read as often as ever after somebody has set the machine's time of day back.
func TestTimeOfDaySetBack(t *testing.T) {
	store := &countedReads{Store: memory.New()}
	s := New(store)
	ready := func(want int) {
		t.Helper()
		if err := s.ready(t.Context()); err != nil || store.n != want {
			t.Errorf("ready: %v, after it %d readings; want %d", err, store.n, want)
		}
	}
	ready(1)
	s.loaded.Store(time.Now().Add(time.Hour).UnixMilli()) // what the time of day was then
	ready(2)
	s.loaded.Store(time.Now().Add(reread / 2).UnixMilli())
	ready(3)
}
