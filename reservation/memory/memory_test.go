package memory

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

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

// timeOfDaySet returns t as time.Now would have, had somebody set the machine's time of day forward by d: the
// monotonic reading is the same.
func timeOfDaySet(t time.Time, d time.Duration) time.Time {
	fields := (*struct {
		wall uint64 // 1 bit: there is a monotonic reading; 33 bits: seconds; 30 bits: nanoseconds
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	fields.wall += uint64(int64(d/time.Second) << 30)
	return t
}

// TestTimeOfDaySet: a lease and a next-request time last as long as they should when somebody sets the
// machine's time of day.
func TestTimeOfDaySet(t *testing.T) {
	const host, lease, gap = "a.test", time.Minute, 10 * time.Second
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		start, passed, set := time.Now(), time.Duration(0), time.Duration(0)
		now := func() time.Time { return timeOfDaySet(start.Add(passed), set) }
		s := New(Config{Now: now})
		if _, err := s.AddHost(t.Context(), host, time.Time{}); err != nil {
			t.Fatal(err)
		}
		held, err := s.TryReserve(t.Context(), host, lease, "one")
		if err != nil {
			t.Fatal(err)
		}
		set = by
		if got := now(); got.Sub(start) != 0 || got.Round(0).Sub(start.Round(0)) != by {
			t.Fatalf("the time is %v after %v; want another time of day, and the same monotonic time", got, start)
		}
		passed += lease - time.Second
		if _, err := s.TryReserve(t.Context(), host, lease, "two"); !errors.Is(err, reservation.ErrNotNow) {
			t.Errorf("set by %v: TryReserve during the lease = %v; want ErrNotNow", by, err)
		}
		if a := s.Do(t.Context(), []reservation.Call{{Verb: reservation.ReleaseHost, Host: host,
			Token: held.Token, After: gap}})[0]; a.Err != nil {
			t.Fatalf("set by %v: ReleaseHost = %v", by, a.Err)
		}
		passed += gap - time.Second
		if _, err := s.TryReserve(t.Context(), host, lease, "two"); !errors.Is(err, reservation.ErrNotNow) {
			t.Errorf("set by %v: TryReserve before the next-request time = %v; want ErrNotNow", by, err)
		}
		passed += time.Second
		if _, err := s.TryReserve(t.Context(), host, lease, "two"); err != nil {
			t.Errorf("set by %v: TryReserve at the next-request time = %v", by, err)
		}
	}
}
