package reservationtest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"urlserver/reservation"
)

// testMutualExclusion lets many callers lease hosts, and checks that no group has two holders.
func testMutualExclusion(r *rig) {
	const crawlers, rounds, hosts = 16, 60, 24
	var names []string
	for i := range hosts {
		names = append(names, fmt.Sprintf("h%d.test", i))
	}
	r.add(names...)
	r.alias("odd", names[1], names[3], names[5])
	var mu sync.Mutex // guards holders and counts
	holders, counts := map[string]uint64{}, map[string]int{}
	take := func(got reservation.Reservation) {
		mu.Lock()
		defer mu.Unlock()
		if other := holders[got.Group]; other != 0 {
			r.Errorf("%s is with %d and %d", got.Group, other, got.Token)
		}
		holders[got.Group] = got.Token
		counts[got.Group]++
	}
	var all sync.WaitGroup
	for c := range crawlers {
		all.Go(func() {
			for i := range rounds {
				var got []reservation.Reservation
				var err error
				if i%4 == 0 {
					got = make([]reservation.Reservation, 1)
					got[0], err = r.TryReserve(r.Context(), names[(i*7+c)%hosts], lease, "crawler")
				} else {
					got, err = r.ReserveNextHost(r.Context(), lease, 1+i%3, "crawler")
				}
				if errors.Is(err, reservation.ErrNotNow) {
					continue
				}
				if err != nil {
					r.Errorf("reserve: %v", err)
					return
				}
				for _, one := range got {
					take(one)
				}
				for _, one := range got {
					mu.Lock()
					delete(holders, one.Group)
					mu.Unlock()
					if err := r.ReleaseHost(r.Context(), one.Host, one.Token, time.Time{}); err != nil {
						r.Errorf("ReleaseHost(%s): %v", one.Host, err)
					}
				}
			}
		})
	}
	all.Wait()
	if len(counts) < hosts-2 {
		r.Errorf("%d groups had their turn, want all %d", len(counts), hosts-2)
	}
	if s, err := r.Store.Stats(r.Context()); err != nil || s.Busy != 0 || s.Ready != hosts {
		r.Errorf("Stats = %+v, %v; want all ready", s, err)
	}
}

func testFencing(r *rig) {
	ctx := r.Context()
	r.add("a.test")
	first := r.try("a.test")
	stale := func(why string, token uint64) {
		r.Helper()
		r.wants(r.ReleaseHost(ctx, "a.test", token, time.Time{}), reservation.ErrStale,
			"%s: ReleaseHost", why)
		_, err := r.ExtendHost(ctx, "a.test", token, lease)
		r.wants(err, reservation.ErrStale, "%s: ExtendHost", why)
		r.wants(r.DeleteHost(ctx, "a.test", token, time.Time{}), reservation.ErrStale, "%s: DeleteHost", why)
	}
	stale("a token never given", first.Token+1)
	stale("no token", 0)
	r.refused("a.test")
	r.release(first, 0)
	r.wants(r.ReleaseHost(ctx, "a.test", first.Token, time.Time{}), reservation.ErrStale, "ReleaseHost again")
	second := r.try("a.test")
	if second.Token <= first.Token {
		r.Errorf("token %d after %d; want a higher one", second.Token, first.Token)
	}
	stale("the token before", first.Token)
	r.refused("a.test")

	r.Advance(lease - time.Millisecond)
	if end, err := r.ExtendHost(ctx, "a.test", second.Token, 2*lease); err != nil ||
		!end.Equal(r.Now().Add(2*lease)) {
		r.Errorf("ExtendHost = %v, %v; want %v", end, err, r.Now().Add(2*lease))
	}
	r.Advance(2 * lease)
	stale("the lease has ended", second.Token)
	r.pass(Penalty)
	third := r.try("a.test")
	stale("somebody else has it", second.Token)
	if third.Token <= second.Token {
		r.Errorf("token %d after %d; want a higher one", third.Token, second.Token)
	}
	r.release(third, 0)
	for _, call := range []error{
		r.ReleaseHost(ctx, "b.test", 1, time.Time{}), r.DeleteHost(ctx, "b.test", 0, time.Time{}),
		errorOf(r.TryReserve(ctx, "b.test", lease, "")),
		errorOf(r.ExtendHost(ctx, "b.test", 1, lease)),
	} {
		r.wants(call, reservation.ErrUnknown, "a call for a host never added")
	}
}

func errorOf[T any](_ T, err error) error { return err }

func testExpiry(r *rig) {
	r.add("a.test", "b.test")
	r.alias("both", "a.test", "b.test")
	r.try("a.test")
	r.pass(lease)
	r.refused("a.test", "b.test")
	r.nothing()
	r.pass(Penalty - time.Millisecond)
	r.refused("a.test", "b.test")
	r.pass(time.Millisecond)
	r.release(r.try("b.test"), 0)
	r.release(r.try("a.test"), 0)
}

// testNextOutlives: a host is never available before its next-request time, whatever happens to it.
func testNextOutlives(r *rig) {
	ctx := r.Context()
	r.add("released.test", "busy.test", "idle.test", "lost.test")
	r.release(r.try("released.test"), time.Hour)
	r.addAt("released.test", -time.Hour, false)
	busy := r.try("busy.test")
	if err := r.DeleteHost(ctx, "busy.test", busy.Token, r.Now().Add(time.Hour)); err != nil {
		r.Errorf("DeleteHost: %v", err)
	}
	r.release(r.try("idle.test"), time.Hour)
	if err := r.DeleteHost(ctx, "idle.test", 0, time.Time{}); err != nil {
		r.Errorf("DeleteHost: %v", err)
	}
	if s, err := r.Store.Stats(ctx); err != nil || s.Hosts != 2 {
		r.Errorf("Stats = %+v, %v; want 2 hosts", s, err)
	}
	r.pass(time.Second)
	r.addAt("busy.test", 0, true)
	r.addAt("idle.test", 0, true)
	r.refused("released.test", "busy.test", "idle.test")
	lost := r.try("lost.test")
	r.pass(lease)
	r.wants(r.DeleteHost(ctx, "lost.test", lost.Token, time.Time{}), reservation.ErrStale,
		"DeleteHost after the lease")
	if err := r.DeleteHost(ctx, "lost.test", 0, time.Time{}); err != nil {
		r.Errorf("DeleteHost: %v", err)
	}
	r.addAt("lost.test", 0, true)
	r.refused("lost.test")
	r.pass(Penalty)
	r.try("lost.test")
	r.pass(time.Hour - time.Second - lease - Penalty - time.Millisecond)
	r.refused("released.test", "busy.test", "idle.test")
	r.pass(time.Millisecond)
	r.try("released.test")
	r.try("busy.test")
	r.try("idle.test")
}

// testEarlier: a host that is due in an hour becomes due now if it is added again as due now.
func testEarlier(r *rig) {
	r.addAt("a.test", time.Hour, true)
	r.refused("a.test")
	r.nothing()
	r.addAt("a.test", 2*time.Hour, false)
	r.addAt("a.test", 30*time.Minute, false)
	r.pass(30*time.Minute - time.Millisecond)
	r.nothing()
	r.pass(time.Millisecond)
	got := r.nextIs("a.test")
	r.addAt("a.test", 0, false)
	r.nothing()
	r.release(got, time.Minute)
	r.addAt("a.test", 0, false)
	r.nothing()
	r.pass(time.Minute)
	r.nextIs("a.test")
}

// testAfter releases hosts for a duration, which the store's clock counts, not the caller's.
func testAfter(r *rig) {
	ctx := r.Context()
	r.add("a.test", "b.test", "c.test", "d.test")
	if _, err := r.Bind(ctx, []reservation.Binding{{Host: "b.test", Group: "10.0.0.1"}},
		24*time.Hour); err != nil {
		r.Fatal(err)
	}
	a, b, c := r.try("a.test"), r.try("b.test"), r.try("c.test")
	long := time.Now().Add(100 * 365 * 24 * time.Hour)
	for i, answer := range r.Do(ctx, []reservation.Call{
		{Verb: reservation.ReleaseHost, Host: a.Host, Token: a.Token, After: time.Minute, Time: long},
		{Verb: reservation.ReleaseHost, Host: b.Host, Token: b.Token,
			After: time.Minute - time.Millisecond/2},
		{Verb: reservation.DeleteHost, Host: c.Host, Token: c.Token, After: time.Minute},
		{Verb: reservation.DeleteHost, Host: "d.test", After: time.Minute},
	}) {
		if answer.Err != nil {
			r.Errorf("call %d: %v", i, answer.Err)
		}
	}
	r.addAt("c.test", 0, true)
	r.addAt("d.test", 0, true)
	r.pass(time.Minute - time.Millisecond)
	r.refused("a.test", "b.test", "c.test", "d.test")
	if r.pass(time.Millisecond); r.Remote {
		r.pass(time.Hour)
	}
	for _, host := range []string{"a.test", "b.test", "c.test", "d.test"} {
		r.try(host)
	}
}
