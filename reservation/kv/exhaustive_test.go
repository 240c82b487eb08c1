package kv

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"urlserver/reservation"
)

const lease = walkLease * time.Millisecond

// tryThenRelease leases a host, keeps it for the time of one call, and releases it.
func tryThenRelease(name, host string) actor {
	return actor{name: name, do: func(r *actorRun, s *Store) {
		got, err := s.TryReserve(context.Background(), host, lease, name)
		r.reserved(s, got, err)
	}}
}

// waitThenRelease does the same after a call, before which time may pass.
func waitThenRelease(name, host string) actor {
	try := tryThenRelease(name, host)
	return actor{name: name, do: func(r *actorRun, s *Store) {
		if _, err := s.cfg.KV.Get(context.Background(), "x"); err != nil {
			r.fault(err.Error())
		}
		try.do(r, s)
	}}
}

// nextThenRelease does the same as tryThenRelease with the next host that is due.
func nextThenRelease(name string) actor {
	return actor{name: name, do: func(r *actorRun, s *Store) {
		got, err := s.ReserveNextHost(context.Background(), lease, 1, name)
		if len(got) == 0 {
			got = []reservation.Reservation{{}}
		}
		r.reserved(s, got[0], err)
	}}
}

func (r *actorRun) reserved(s *Store, got reservation.Reservation, err error) {
	if !r.has(s, got, err) {
		return
	}
	r.release(s, got)
}

// has reports whether a lease was given, and checks it.
func (r *actorRun) has(s *Store, got reservation.Reservation, err error) bool {
	if errors.Is(err, reservation.ErrNotNow) {
		return false
	}
	if err != nil {
		r.fault(s.cfg.ID + ": " + err.Error())
		return false
	}
	r.then(func(w *state) { w.given(s.cfg.ID, got) })
	return true
}

// release releases a lease after a fetch. It may have been lost meanwhile.
func (r *actorRun) release(s *Store, got reservation.Reservation) {
	if _, err := s.cfg.KV.Get(context.Background(), "x"); err != nil { // the fetch
		r.fault(err.Error())
	}
	r.then(func(w *state) { w.returned(got) })
	err := s.ReleaseHost(context.Background(), got.Host, got.Token, time.Time{})
	r.then(func(w *state) {
		if lost := got.LeaseEnd.UnixMilli() <= w.now; err != nil &&
			!(lost && errors.Is(err, reservation.ErrStale)) {
			w.faults = append(w.faults, s.cfg.ID+" releases: "+err.Error())
		}
	})
}

// lateRelease releases a lease that was lost long ago.
func lateRelease(host string) actor {
	return actor{name: "late", do: func(r *actorRun, s *Store) {
		if err := s.ReleaseHost(context.Background(), host, 1, time.Time{}); !errors.Is(err,
			reservation.ErrStale) {
			r.fault("a late release was taken")
		}
	}}
}

func sweeper() actor {
	return actor{name: "sweep", do: func(r *actorRun, s *Store) {
		if err := s.Sweep(context.Background()); err != nil {
			r.fault("sweep: " + err.Error())
		}
	}}
}

func changeAlias(alias string, hosts ...string) actor {
	return actor{name: "alias", do: func(r *actorRun, s *Store) {
		if err := s.SetAlias(context.Background(), alias, hosts); err != nil {
			r.fault("alias: " + err.Error())
		}
	}}
}

// changeThenTry sets an alias and then tries to lease b, which must fail while somebody has a.
func changeThenTry(alias string, hosts ...string) actor {
	return actor{name: "alias", do: func(r *actorRun, s *Store) {
		if err := s.SetAlias(context.Background(), alias, hosts); err != nil {
			r.fault("alias: " + err.Error())
		}
		r.tryBeside(s, "b")
	}}
}

// tryBeside tries to lease a host, which must fail while somebody has another host of its group. The
// lease is kept.
func (r *actorRun) tryBeside(s *Store, host string) {
	got, err := s.TryReserve(context.Background(), host, lease, s.cfg.ID)
	if err != nil {
		return
	}
	r.then(func(w *state) {
		if len(w.grants) > 0 {
			w.faults = append(w.faults, fmt.Sprintf("%s was given %+v while somebody has %+v", s.cfg.ID,
				got, w.grants))
		}
		w.given(s.cfg.ID, got)
	})
}

// added prepares hosts, and an alias for some of them.
func added(alias string, inAlias []string, hosts ...string) func(*testing.T, *Store) {
	return func(t *testing.T, s *Store) {
		t.Helper()
		for _, host := range hosts {
			if _, err := s.AddHost(t.Context(), host, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		if alias != "" {
			if err := s.SetAlias(t.Context(), alias, inAlias); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// held prepares, and leases a host under token 1 to a process that is gone. The lease ends as the
// walk begins.
func held(host string, prepare func(*testing.T, *Store)) func(*testing.T, *Store) {
	return func(t *testing.T, s *Store) {
		t.Helper()
		prepare(t, s)
		r, err := s.TryReserve(t.Context(), host, time.Millisecond, "gone")
		if err != nil || r.Token != 1 {
			t.Fatalf("TryReserve = %+v, %v", r, err)
		}
	}
}

// busy prepares, and leases a host under token 1 to releaser.
func busy(host string, prepare func(*testing.T, *Store)) func(*testing.T, *Store) {
	return func(t *testing.T, s *Store) {
		t.Helper()
		prepare(t, s)
		r, err := s.TryReserve(t.Context(), host, lease, "one")
		if err != nil || r.Token != 1 {
			t.Fatalf("TryReserve = %+v, %v", r, err)
		}
	}
}

// releaser has the lease that busy made, and releases it.
func releaser(host string) actor {
	return actor{name: "one", do: func(r *actorRun, s *Store) {
		r.reserved(s, reservation.Reservation{Host: host, Token: 1,
			LeaseEnd: time.UnixMilli(walkStart - 1 + walkLease)}, nil)
	}}
}

var scenarios = append(aliasScenarios, callScenarios...)

var aliasScenarios = []scenario{
	{name: "two reservers, a late release, a sweep, one host",
		prepare: held("a", added("", nil, "a")), hosts: []string{"a"},
		actors: []actor{tryThenRelease("one", "a"), nextThenRelease("two"), lateRelease("a"),
			sweeper()}, ticks: []int64{walkPenalty, walkLease + walkPenalty}},
	{name: "two hosts of an alias", prepare: added("it", []string{"a", "b"}, "a", "b"),
		hosts:  []string{"a", "b"},
		actors: []actor{tryThenRelease("one", "a"), tryThenRelease("two", "b")},
		ticks:  []int64{walkLease + walkPenalty}},
	{name: "an alias, a late release and a lost lease",
		prepare: held("a", added("it", []string{"a", "b"}, "a", "b")), hosts: []string{"a", "b"},
		actors: []actor{waitThenRelease("two", "b"), lateRelease("a")},
		ticks:  []int64{walkPenalty, walkLease + walkPenalty}},
	{name: "an alias is made around a busy host", prepare: busy("a", added("", nil, "a", "b")),
		hosts:  []string{"a", "b"},
		actors: []actor{releaser("a"), changeThenTry("it", "a", "b")}, crashes: "nobody"},
	{name: "an alias is dissolved around a busy host",
		prepare: busy("a", added("it", []string{"a", "b"}, "a", "b")), hosts: []string{"a", "b"},
		actors: []actor{releaser("a"), changeThenTry("it")}, crashes: "nobody"},
	{name: "an alias is made meanwhile", prepare: added("", nil, "a", "b"),
		hosts:  []string{"a", "b"},
		actors: []actor{tryThenRelease("one", "a"), changeAlias("it", "a", "b")}, crashes: "alias"},
}

// TestExhaustive walks every interleaving of each scenario, with a crash before any call. No state
// has two holders of a host, and no end has lost a host.
func TestExhaustive(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			states, ends, fault := sc.explore(t)
			if fault != "" {
				t.Fatal(fault)
			}
			t.Logf("%d states, %d ends", states, ends)
		})
	}
}
