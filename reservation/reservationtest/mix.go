package reservationtest

import (
	"errors"
	"fmt"
	"time"

	"urlserver/reservation"
)

const mixed = 250 // hosts; more than a store may put into one batch

func mixedHost(i int) string { return fmt.Sprintf("h%d.test", i) }

// testMix: each call of a batch has its own answer, however the store splits the batch.
func testMix(r *rig) {
	var calls []reservation.Call
	for i := range mixed {
		calls = append(calls, reservation.Call{Verb: reservation.AddHost, Host: mixedHost(i)})
		if i%100 == 50 {
			calls = append(calls, reservation.Call{Verb: reservation.AddHost, Host: "not a host"})
		}
	}
	for i, a := range r.Do(r.Context(), calls) {
		if bad := calls[i].Host == "not a host"; bad != errors.Is(a.Err, reservation.ErrInvalid) ||
			a.Added == bad {
			r.Fatalf("adding %s = %+v", calls[i].Host, a)
		}
	}
	calls = nil
	for i := range mixed {
		lease := time.Duration(i+1) * time.Minute
		calls = append(calls, reservation.Call{Verb: reservation.TryReserve, Host: mixedHost(i),
			Lease: lease, Holder: "me"})
	}
	reserved := r.Do(r.Context(), calls)
	for i, a := range reserved {
		if end := r.Now().Add(calls[i].Lease); a.Err != nil || a.Reservation.Host != mixedHost(i) ||
			!a.Reservation.LeaseEnd.Equal(end) {
			r.Fatalf("reserving %s = %+v; want it until %v", mixedHost(i), a, end)
		}
	}
	r.mixEnds(reserved)
}

// mixEnds ends and extends leases. Every fifth token is wrong.
func (r *rig) mixEnds(reserved []reservation.Answer) {
	verbs := []reservation.Verb{reservation.ExtendHost, reservation.ReleaseHost, reservation.DeleteHost}
	var calls []reservation.Call
	for i, a := range reserved {
		c := reservation.Call{
			Verb: reservation.ReleaseHost, Host: mixedHost(i), Token: a.Reservation.Token,
			Lease: time.Duration(i+1) * time.Second, Time: r.Now().Add(time.Hour),
		}
		if i > mixed/2 { // first many of one verb, then alternating
			c.Verb = verbs[i%len(verbs)]
		}
		if i%5 == 0 {
			c.Token += mixed
		}
		calls = append(calls, c)
	}
	for i, a := range r.Do(r.Context(), calls) {
		c, stale := calls[i], i%5 == 0
		switch {
		case stale != errors.Is(a.Err, reservation.ErrStale), !stale && a.Err != nil:
			r.Errorf("verb %d of %s = %+v; want it stale: %v", c.Verb, c.Host, a, stale)
		case !stale && c.Verb == reservation.ExtendHost && !a.LeaseEnd.Equal(r.Now().Add(c.Lease)):
			r.Errorf("%s is extended until %v; want %v", c.Host, a.LeaseEnd, r.Now().Add(c.Lease))
		}
	}
}
