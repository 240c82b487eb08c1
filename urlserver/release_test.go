package urlserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/reservation"
	"urlserver/reservation/memory"
	"urlserver/urlserver/engine"
)

// TestReleaseIsForATime: a group that is released may be requested again when its gap is over, no
// sooner and no later, whatever the difference between the clocks of this daemon and the store is,
// and whenever a clock is set.
func TestReleaseIsForATime(t *testing.T) {
	for _, c := range []struct{ ahead, jump time.Duration }{{0, 0}, {time.Hour, 0}, {-time.Hour, 0},
		{0, time.Hour}, {0, -time.Hour}} {
		t.Run(fmt.Sprintf("%v ahead, set %v on", c.ahead, c.jump), func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			store := memory.New(memory.Config{Now: func() time.Time { return now }})
			wall := now.Add(c.ahead)
			r := &Reserver{Store: store, Lease: time.Minute, Holder: "me", Log: zerolog.Nop(),
				now: func() time.Time { return wall }}
			tries := &engine.LeaseBatch{Acquires: []engine.LeaseRequest{{Host: "a.test"}, {Host: "b.test"}}}
			r.do(t.Context(), tries)
			wall = wall.Add(c.jump)
			r.do(t.Context(), &engine.LeaseBatch{Releases: []engine.Release{
				{Host: "a.test", Token: tries.Acquires[0].Token, Next: 10 * time.Second},
				{Host: "b.test", Token: tries.Acquires[1].Token, Next: 10 * time.Second, Delete: true},
			}})
			for _, host := range []string{"a.test", "b.test"} {
				if _, err := store.AddHost(t.Context(), host, time.Time{}); err != nil {
					t.Fatal(err)
				}
				if x, err := store.Explain(t.Context(), host); err != nil ||
					x.State != reservation.Waiting || !x.Until.Equal(now.Add(10*time.Second)) {
					t.Errorf("%s is %+v, %v; want it to wait for 10 s", host, x, err)
				}
			}
		})
	}
}
