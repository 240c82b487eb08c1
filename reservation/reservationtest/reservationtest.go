// Package reservationtest has the tests that every reservation.Store passes.
package reservationtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"urlserver/reservation"
)

// Penalty is the penalty of a store under test.
const Penalty = 10 * time.Second

const lease = time.Minute

// Bench is an empty store to test, with what the tests need.
type Bench struct {
	Store   reservation.Store
	Now     func() time.Time      // the store's clock, which stands still
	Advance func(d time.Duration) // except for this
	Many    int                   // a great many hosts, or single calls, for this store
	// Lazy: a host that a call made ready may wait for the janitor, or for the end of a lease.
	Lazy   bool
	Remote bool // times go through the caller's running clock, so they may be later than given
	// Lose removes a host from the queues but not from the records, as a crash between two writes
	// might. It is nil if the store has no two writes.
	Lose func(t *testing.T, host string)
}

// Run tests the stores that open makes.
func Run(t *testing.T, open func(t *testing.T) Bench) {
	for name, test := range map[string]func(*rig){
		"one holder at a time":          testMutualExclusion,
		"stale tokens":                  testFencing,
		"lost leases":                   testExpiry,
		"next time outlives":            testNextOutlives,
		"earlier is sooner":             testEarlier,
		"aliases":                       testAliases,
		"aliases change while busy":     testAliasWhileBusy,
		"aliases split":                 testAliasSplit,
		"alias of lost leases":          testAliasLost,
		"hosts join an alias":           testJoin,
		"hosts join it at once":         testJoinAtOnce,
		"released for a time":           testAfter,
		"bindings":                      testBindings,
		"bindings while busy":           testBindWhileBusy,
		"bindings and aliases":          testBindAndAlias,
		"addresses and aliases":         testBindAndAddress,
		"busy hosts are not in the way": testBusyInFront,
		"a busy alias is not either":    testBusyAliasInFront,
		"first in first out":            testFIFO,
		"counts":                        testCounts,
		"explain":                       testExplain,
		"janitor":                       testJanitor,
		"many at once":                  testMany,
		"many of all sorts at once":     testMix,
		"bad input":                     testInvalid,
		"forms of a host":               testForms,
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			test(&rig{T: t, Bench: b, Store: b.Store})
		})
	}
	for _, seed := range modelSeeds() {
		t.Run(fmt.Sprintf("model %d", seed), func(t *testing.T) {
			b := open(t)
			testModel(&rig{T: t, Bench: b, Store: b.Store}, seed)
		})
	}
}

// rig is a bench with helpers.
type rig struct {
	*testing.T
	Bench
	reservation.Store
}

func (r *rig) add(hosts ...string) {
	r.Helper()
	calls := make([]reservation.Call, len(hosts))
	for i, host := range hosts {
		calls[i] = reservation.Call{Verb: reservation.AddHost, Host: host}
	}
	for i, a := range r.Do(r.Context(), calls) {
		if a.Err != nil || !a.Added {
			r.Fatalf("AddHost(%s) = %v, %v; want true", hosts[i], a.Added, a.Err)
		}
	}
}

func (r *rig) addAt(host string, in time.Duration, want bool) {
	r.Helper()
	if added, err := r.AddHost(r.Context(), host, r.Now().Add(in)); err != nil || added != want {
		r.Fatalf("AddHost(%s) = %v, %v; want %v", host, added, err, want)
	}
}

// try leases a host that must be free.
func (r *rig) try(host string) reservation.Reservation {
	r.Helper()
	got, err := r.TryReserve(r.Context(), host, lease, "me")
	if err != nil || got.Host != host || got.Token == 0 || !got.LeaseEnd.Equal(r.Now().Add(lease)) {
		r.Fatalf("TryReserve(%s) = %+v, %v; want it until %v", host, got, err, r.Now().Add(lease))
	}
	return got
}

// refused checks that TryReserve returns ErrNotNow for each host.
func (r *rig) refused(hosts ...string) {
	r.Helper()
	for _, host := range hosts {
		if got, err := r.TryReserve(r.Context(), host, lease, "me"); !errors.Is(err, reservation.ErrNotNow) {
			r.Fatalf("TryReserve(%s) = %+v, %v; want ErrNotNow", host, got, err)
		}
	}
}

// nextIs leases the next host, which must be host.
func (r *rig) nextIs(host string) reservation.Reservation {
	r.Helper()
	got, err := r.ReserveNextHost(r.Context(), lease, 0, "me")
	if err != nil || len(got) != 1 || got[0].Host != host {
		r.Fatalf("ReserveNextHost = %+v, %v; want %s", got, err, host)
	}
	return got[0]
}

func (r *rig) nothing() {
	r.Helper()
	if got, err := r.ReserveNextHost(r.Context(), lease, 10, "me"); !errors.Is(err, reservation.ErrNotNow) {
		r.Fatalf("ReserveNextHost = %+v, %v; want ErrNotNow", got, err)
	}
}

// release releases a lease. The host is due again after a while.
func (r *rig) release(res reservation.Reservation, after time.Duration) {
	r.Helper()
	if err := r.ReleaseHost(r.Context(), res.Host, res.Token, r.Now().Add(after)); err != nil {
		r.Fatalf("ReleaseHost(%s, %d): %v", res.Host, res.Token, err)
	}
}

func (r *rig) alias(alias string, hosts ...string) {
	r.Helper()
	if err := r.SetAlias(r.Context(), alias, hosts); err != nil {
		r.Fatalf("SetAlias(%s, %q): %v", alias, hosts, err)
	}
}

func (r *rig) bind(host, group, want string) {
	r.Helper()
	got, err := r.Bind(r.Context(), []reservation.Binding{{Host: host, Group: group}}, time.Minute)
	if err != nil || len(got) != 1 || got[0].Group != want {
		r.Fatalf("Bind(%s, %s) = %v, %v; want %s", host, group, got, err, want)
	}
}

// pass lets time pass, with a sweep after each step.
func (r *rig) pass(d time.Duration) {
	r.Helper()
	r.Advance(d)
	if err := r.Sweep(r.Context()); err != nil {
		r.Fatalf("Sweep: %v", err)
	}
}

// wants checks that err is want, by errors.Is.
func (r *rig) wants(err, want error, format string, args ...any) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Errorf(format+" = %v; want %v", append(args, err, want)...)
	}
}
