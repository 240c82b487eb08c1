package memory

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/reservationtest"
)

func TestStore(t *testing.T) {
	reservationtest.Run(t, func(*testing.T) reservationtest.Bench {
		var clock atomic.Int64
		clock.Store(1_700_000_000_000)
		now := func() time.Time { return time.UnixMilli(clock.Load()) }
		return reservationtest.Bench{
			Store:   New(Config{Penalty: reservationtest.Penalty, Now: now}),
			Now:     now,
			Advance: func(d time.Duration) { clock.Add(d.Milliseconds()) },
			Many:    100_000,
		}
	})
}

// TestManyHostsBoundToThemselves binds hosts to themselves and, when that has ended, to an address.
// They are more than one call's housekeeping sees.
func TestManyHostsBoundToThemselves(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	s := New(Config{Now: func() time.Time { return now }})
	var own, address []reservation.Binding
	for i := range 3 * batch {
		host := fmt.Sprintf("h%d.example", i)
		own = append(own, reservation.Binding{Host: host, Group: host})
		address = append(address, reservation.Binding{Host: host, Group: "192.0.2.1"})
	}
	for _, bindings := range [][]reservation.Binding{own, address} {
		bound, err := s.Bind(t.Context(), bindings, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range bindings {
			if bound[i].Group != b.Group {
				t.Errorf("%s is in the group %s; want %s", b.Host, bound[i].Group, b.Group)
			}
		}
		now = now.Add(2 * time.Second)
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
}
