package redis

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// TestHostIsTold has whoever reports an outcome go away before the document's host, which is in
// another shard, has been told.
func TestHostIsTold(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	putURLs(t, a, "mixed", "http://c.test/1")
	had := take(t, a)
	putURLs(t, a, "", "http://c.test/2")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	after(t, a, outcomeScript, func([]rueidis.RedisResult) { cancel() })
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: had.At(0).DocID, URL: had.At(0).URL})
	if err := a.Outcomes(ctx, &o); err != nil {
		t.Fatal(err)
	}
	d.pass(time.Minute / 2)
	want(t, "before the host is told", call(t, b))
	a.sweep(t.Context())
	want(t, "after the next beat", call(t, b), "http://c.test/2")
}
