package urlserver

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c callStats
		for i := range 3 {
			began := time.Now()
			time.Sleep(time.Duration(i) * time.Second)
			c.note(began, i == 1)
		}
		got := c.read()
		if got.Failed != 1 || got.Seconds.Sum != 3*time.Second {
			t.Errorf("calls are %+v; want 1 failed, 3 s in all", got)
		}
		count := uint64(0)
		for _, n := range got.Seconds.Buckets {
			count += n
		}
		if count != 3 {
			t.Errorf("%d are counted; want 3", count)
		}
	})
}
