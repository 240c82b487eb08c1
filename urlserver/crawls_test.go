package urlserver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// TestCancelledAreNotPending: a report of a crawl that was stopped a moment ago counts nothing as
// pending, although the index has not taken the outcomes yet.
func TestCancelledAreNotPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, func(c *configs.Config) { c.DocIndex.Retry, c.DocIndex.MaxRetry = second, second })
		b.index.offer("0 http://10.0.0.1/0", "1 http://10.0.0.1/1", "2 http://10.0.0.1/2")
		s := b.spider()
		trans, at := s.line()
		b.index.failing(errIndex)
		var stopped docindex.Outcomes
		for i := range 3 {
			stopped.Add(docindex.Outcome{DocID: fmt.Append(nil, i), Kind: docindex.Stopped})
		}
		if n, err := b.d.Cancel(t.Context(), &stopped); err != nil || n == 0 {
			t.Fatalf("Cancel: %d, %v", n, err)
		}
		synctest.Wait()
		check := func(when string, want int) {
			t.Helper()
			var away docindex.Outcomes
			if err := b.d.NotPending(t.Context(), &away); err != nil || away.Len() != want {
				t.Errorf("%s: %d of 3 documents are not pending, %v; want %d", when, away.Len(), err, want)
			}
		}
		check("the index does not take outcomes, "+at+" is at a spider", 3)
		b.index.failing(nil)
		time.Sleep(2 * second)
		synctest.Wait()
		check("the index has taken them", 1)
		s.say("%s DONE", trans)
		synctest.Wait()
		check("the spider is through", 0)
		b.stopped()
	})
}
