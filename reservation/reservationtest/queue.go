package reservationtest

import (
	"fmt"
	"time"

	"urlserver/reservation"
)

// testBusyInFront has a great many leased hosts that are due long before the free one.
func testBusyInFront(r *rig) {
	names := make([]string, r.Many)
	for i := range names {
		names[i] = fmt.Sprintf("h%d.test", i)
	}
	r.add(names...)
	for busy := 0; busy < r.Many; {
		got, err := r.ReserveNextHost(r.Context(), lease, reservation.MaxReserve, "me")
		if err != nil {
			r.Fatalf("ReserveNextHost with %d of %d busy: %v", busy, r.Many, err)
		}
		busy += len(got)
	}
	r.nothing()
	r.add("last.test")
	r.nextIs("last.test")
}

// testBusyAliasInFront: the first due hosts all belong to one alias with a live lease.
func testBusyAliasInFront(r *rig) {
	names := make([]string, min(r.Many, 2000))
	for i := range names {
		names[i] = fmt.Sprintf("h%d.test", i)
	}
	r.add(names...)
	r.alias("it", names...)
	got, err := r.ReserveNextHost(r.Context(), lease, 10, "me")
	if err != nil || len(got) != 1 || got[0].Group != "it" {
		r.Fatalf("ReserveNextHost = %+v, %v; want one host of it", got, err)
	}
	r.Advance(time.Second)
	r.add("last.test")
	r.nextIs("last.test")
	r.release(got[0], 0)
	if got, err = r.ReserveNextHost(r.Context(), lease, 10, "me"); err != nil || len(got) != 1 {
		r.Fatalf("ReserveNextHost = %+v, %v; want one host of it", got, err)
	}
}

func testFIFO(r *rig) {
	const hosts = 40
	want := make([]string, hosts)
	for i := range hosts {
		name, place := fmt.Sprintf("h%d.test", i), i*37%hosts
		want[place] = name
		r.addAt(name, time.Duration(place+1)*10*time.Millisecond, true)
	}
	r.pass(time.Second)
	var reserved []reservation.Reservation
	for i := range hosts {
		reserved = append(reserved, r.nextIs(want[i]))
	}
	r.nothing()
	for i := range hosts {
		r.release(reserved[(i*7)%hosts], 0)
		r.Advance(time.Millisecond) // the order within a millisecond is not part of the contract
	}
	got, err := r.ReserveNextHost(r.Context(), lease, hosts, "me")
	if err != nil || len(got) != hosts {
		r.Fatalf("ReserveNextHost = %d hosts, %v; want %d", len(got), err, hosts)
	}
	for i := range hosts {
		if got[i].Host != reserved[(i*7)%hosts].Host {
			r.Fatalf("%dth is %s; want %s, as released", i, got[i].Host, reserved[(i*7)%hosts].Host)
		}
	}
}

func testCounts(r *rig) {
	want := func(want reservation.Stats) {
		r.Helper()
		if got, err := r.Store.Stats(r.Context()); err != nil || got != want {
			r.Errorf("Stats = %+v, %v; want %+v", got, err, want)
		}
	}
	want(reservation.Stats{})
	r.add("a.test", "b.test", "c.test", "d.test")
	r.addAt("e.test", time.Hour, true)
	r.alias("it", "a.test", "b.test", "x.test")
	want(reservation.Stats{Hosts: 5, Waiting: 1, Ready: 4, Aliases: 1})
	a, d := r.try("a.test"), r.try("d.test")
	want(reservation.Stats{Hosts: 5, Waiting: 2, Ready: 1, Busy: 2, Aliases: 1})
	r.release(a, time.Minute)
	want(reservation.Stats{Hosts: 5, Waiting: 3, Ready: 1, Busy: 1, Aliases: 1})
	if err := r.DeleteHost(r.Context(), "d.test", d.Token, time.Time{}); err != nil {
		r.Errorf("DeleteHost: %v", err)
	}
	want(reservation.Stats{Hosts: 4, Waiting: 3, Ready: 1, Aliases: 1})
	r.pass(time.Hour)
	r.alias("it")
	want(reservation.Stats{Hosts: 4, Ready: 4})
	if err := r.DeleteHost(r.Context(), "e.test", 0, time.Time{}); err != nil {
		r.Errorf("DeleteHost: %v", err)
	}
	want(reservation.Stats{Hosts: 3, Ready: 3})
}

func testExplain(r *rig) {
	want := func(host, group string, state reservation.State, in time.Duration, rule, holder string) {
		r.Helper()
		w := reservation.Explanation{Host: host, Group: group, State: state, Rule: rule, Holder: holder}
		if in > 0 {
			w.Until = r.Now().Add(in)
		}
		got, err := r.Store.Explain(r.Context(), host)
		if err != nil || !got.Until.Equal(w.Until) {
			r.Errorf("Explain(%s) = %+v, %v; want until %v", host, got, err, w.Until)
		}
		got.Until = w.Until
		if got != w {
			r.Errorf("Explain(%s) = %+v; want %+v", host, got, w)
		}
	}
	want("a.test", "a.test", reservation.Unknown, 0, reservation.RuleUnknown, "")
	r.add("a.test", "b.test")
	r.addAt("c.test", time.Hour, true)
	r.alias("it", "a.test", "b.test")
	want("a.test", "it", reservation.Ready, 0, reservation.RuleReady, "")
	want("c.test", "c.test", reservation.Waiting, time.Hour, reservation.RuleDue, "")
	a := r.try("a.test")
	want("a.test", "it", reservation.Busy, lease, reservation.RuleBusy, "me")
	want("b.test", "it", reservation.Waiting, lease, reservation.RuleGroupBusy, "me")
	r.release(a, time.Minute)
	want("a.test", "it", reservation.Waiting, time.Minute, reservation.RuleNext, "")
	want("b.test", "it", reservation.Waiting, time.Minute, reservation.RuleNext, "")
	r.pass(time.Minute)
	r.try("b.test")
	r.pass(lease)
	want("a.test", "it", reservation.Waiting, Penalty, reservation.RuleNext, "")
	want("b.test", "it", reservation.Waiting, Penalty, reservation.RuleNext, "")
}

// testJanitor removes queue entries as a crash would.
func testJanitor(r *rig) {
	r.add("a.test", "b.test")
	if r.Lose == nil {
		r.Skip("nothing can be lost from this store's queues: they change with the records, at once")
	}
	r.Lose(r.T, "a.test")
	b := r.nextIs("b.test")
	r.nothing()
	r.pass(time.Second)
	a := r.nextIs("a.test")
	r.Lose(r.T, "a.test")
	r.Lose(r.T, "b.test")
	r.pass(lease + Penalty)
	r.pass(Penalty)
	for range 2 {
		got, err := r.ReserveNextHost(r.Context(), lease, 1, "me")
		if err != nil || got[0].Token <= max(a.Token, b.Token) {
			r.Fatalf("ReserveNextHost = %+v, %v; want a host that was lost", got, err)
		}
	}
	r.nothing()
	if s, err := r.Store.Stats(r.Context()); err != nil || s.Repaired == 0 || s.Busy != 2 {
		r.Errorf("Stats = %+v, %v; want some repaired, two busy", s, err)
	}
}
