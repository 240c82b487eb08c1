package reservationtest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"urlserver/reservation"
)

func testAliases(r *rig) {
	ctx := r.Context()
	r.add("a.test", "b.test", "c.test")
	r.alias("kommune_1", "b.test", "a.test", "later.test", "A.test")
	for _, name := range []string{"kommune_1", "a.test", "later.test"} {
		alias, hosts, err := r.GetAlias(ctx, name)
		if want := []string{"a.test", "b.test", "later.test"}; err != nil || alias != "kommune_1" ||
			!slices.Equal(hosts, want) {
			r.Errorf("GetAlias(%s) = %s, %q, %v; want kommune_1, %q", name, alias, hosts, err, want)
		}
	}
	_, _, err := r.GetAlias(ctx, "c.test")
	r.wants(err, reservation.ErrUnknown, "GetAlias of a host in none")
	a := r.try("a.test")
	if a.Group != "kommune_1" {
		r.Errorf("group %s, want kommune_1", a.Group)
	}
	r.refused("b.test")
	r.wants(r.ReleaseHost(ctx, "b.test", a.Token, time.Time{}), reservation.ErrStale,
		"ReleaseHost of another host of the group")
	r.addAt("later.test", 0, true)
	r.refused("later.test")
	c := r.nextIs("c.test")
	r.nothing()
	r.release(a, time.Second)
	r.refused("b.test", "later.test")
	r.pass(time.Second)
	got := r.try("b.test")
	r.release(got, 0)
	r.release(c, 0)

	r.alias("other", "a.test", "c.test") // a moves
	if _, hosts, err := r.GetAlias(ctx, "kommune_1"); err != nil ||
		!slices.Equal(hosts, []string{"b.test", "later.test"}) {
		r.Errorf("GetAlias after a move = %q, %v; want b and later", hosts, err)
	}
	b := r.try("b.test")
	a = r.try("a.test")
	r.refused("c.test", "later.test")
	r.release(a, 0)
	r.release(b, 0)
	r.alias("other")
	_, _, err = r.GetAlias(ctx, "other")
	r.wants(err, reservation.ErrUnknown, "GetAlias of a dissolved alias")
	r.try("a.test")
	r.try("c.test")
	if s, err := r.Store.Stats(ctx); err != nil || s.Aliases != 1 || s.Hosts != 4 {
		r.Errorf("Stats = %+v, %v; want 1 alias, 4 hosts", s, err)
	}
}

// testAliasWhileBusy changes an alias while one of its hosts is leased. Nobody can lease a host of
// the former or the new set, and after the lease the latest time applies.
func testAliasWhileBusy(r *rig) {
	all := []string{"stays.test", "goes.test", "comes.test", "busy.test"}
	r.add(all...)
	r.add("lone.test", "lone2.test")
	r.alias("it", "stays.test", "goes.test", "busy.test")
	busy := r.try("busy.test")
	r.alias("it", "stays.test", "comes.test")
	r.refused(all...)
	if end, err := r.ExtendHost(r.Context(), "busy.test", busy.Token, lease); err != nil ||
		!end.Equal(r.Now().Add(lease)) {
		r.Errorf("ExtendHost = %v, %v; want another lease", end, err)
	}
	r.release(busy, time.Minute)
	r.refused(all...)
	r.pass(time.Minute)
	goes, stays, first := r.try("goes.test"), r.try("stays.test"), r.try("busy.test")
	r.refused("comes.test")
	r.release(stays, 0)

	// Three hosts with leases of their own join one alias. All leases have to end.
	r.alias("three", "goes.test", "busy.test", "lone.test")
	r.refused("lone.test", "goes.test", "busy.test")
	r.release(goes, time.Hour)
	r.refused("lone.test", "goes.test", "busy.test")
	r.release(first, time.Minute)
	r.pass(time.Hour - time.Millisecond)
	r.refused("lone.test", "goes.test", "busy.test")
	r.pass(time.Millisecond)
	r.try("lone.test")
	r.refused("goes.test", "busy.test")
	r.try("lone2.test")
}

// testAliasSplit dissolves an alias with a lease, and loses the lease.
func testAliasSplit(r *rig) {
	r.add("a.test", "b.test", "c.test")
	r.alias("it", "a.test", "b.test")
	r.try("a.test")
	r.alias("it")
	r.alias("new", "b.test", "c.test")
	r.refused("a.test", "b.test", "c.test")
	r.pass(lease)
	r.refused("a.test", "b.test", "c.test")
	r.pass(Penalty)
	r.try("a.test")
	r.try("b.test")
	r.refused("c.test")
}

// testAliasLost changes an alias under two leases and loses them. All hosts come free together, by the
// later lease, and one sweep after it is enough, however late it comes.
func testAliasLost(r *rig) {
	for i, late := range []time.Duration{0, Penalty / 2, 2 * Penalty} {
		a, b, c := fmt.Sprintf("a%d.test", i), fmt.Sprintf("b%d.test", i), fmt.Sprintf("c%d.test", i)
		r.add(a, b, c)
		r.try(a)
		r.Advance(lease / 2)
		last := r.try(b).LeaseEnd
		r.alias("it", a, b, c)
		r.alias("it", b, c)
		r.pass(lease / 2) // the lease of a ends, that of b goes on
		r.refused(a, b, c)
		r.pass(last.Sub(r.Now()) + late)
		if wait := last.Add(Penalty).Sub(r.Now()); wait > 0 {
			r.Advance(wait - time.Millisecond)
			r.refused(a, b, c)
			r.Advance(time.Millisecond)
		}
		r.release(r.try(a), 0)
		r.release(r.try(c), 0)
		r.release(r.try(b), 0)
	}
}

func (r *rig) join(alias string, hosts []string, want ...string) {
	r.Helper()
	if got, err := r.JoinAlias(r.Context(), alias, hosts); err != nil || !slices.Equal(got, want) {
		r.Errorf("JoinAlias(%s, %q) = %q, %v; want %q", alias, hosts, got, err, want)
	}
}

// testJoin adds hosts to aliases. Hosts of another alias stay there, and a lease covers all of the
// alias.
func testJoin(r *rig) {
	ctx := r.Context()
	r.add("a.test", "b.test", "c.test", "taken.test", "name")
	r.alias("other", "taken.test")
	r.join("it", []string{"B.test", "taken.test", "b.test"}, "it", "other", "it")
	r.join("it", []string{"b.test"}, "it")
	r.join("other", nil)
	b, taken := r.try("b.test"), r.try("taken.test")
	if b.Group != "it" || taken.Group != "other" {
		r.Errorf("groups %s and %s; want it and other", b.Group, taken.Group)
	}
	r.join("it", []string{"a.test", "later.test"}, "it", "it")
	r.refused("a.test")
	if _, hosts, err := r.GetAlias(ctx, "it"); err != nil ||
		!slices.Equal(hosts, []string{"a.test", "b.test", "later.test"}) {
		r.Errorf("GetAlias = %q, %v; want a, b and later", hosts, err)
	}
	r.release(b, time.Minute)
	r.refused("a.test", "b.test")
	c := r.try("c.test")
	r.join("it", []string{"c.test"}, "it")
	r.pass(time.Minute - time.Millisecond)
	r.refused("a.test", "b.test")
	r.release(c, time.Second)
	r.pass(time.Second)
	r.try("a.test")
	r.refused("b.test", "c.test")
	for alias, host := range map[string]string{"name": "a.test", "a.b": "a.test", "x": "it",
		"y": "not a host"} {
		_, err := r.JoinAlias(ctx, alias, []string{host})
		r.wants(err, reservation.ErrInvalid, "JoinAlias(%s, %s)", alias, host)
	}
}

// testJoinAtOnce lets many callers add a host each to one alias. All hosts join it, and one is
// leased at a time.
func testJoinAtOnce(r *rig) {
	const callers = 16
	var names []string
	for i := range callers {
		names = append(names, fmt.Sprintf("h%02d.test", i))
	}
	r.add(names...)
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { r.join("it", []string{name}, "it") })
	}
	all.Wait()
	if _, hosts, err := r.GetAlias(r.Context(), "it"); err != nil || !slices.Equal(hosts, names) {
		r.Errorf("GetAlias = %q, %v; want all %d", hosts, err, callers)
	}
	if got, err := r.ReserveNextHost(r.Context(), lease, callers, "me"); err != nil || len(got) != 1 {
		r.Errorf("ReserveNextHost = %+v, %v; want one host of the alias", got, err)
	}
}

func testBindings(r *rig) {
	r.add("a.test", "b.test", "c.test")
	r.bind("a.test", "10.0.0.1", "10.0.0.1")
	r.bind("b.test", "10.0.0.1", "10.0.0.1")
	r.bind("b.test", "10.0.0.2", "10.0.0.1")
	a := r.try("a.test")
	if a.Group != "10.0.0.1" {
		r.Errorf("group %s, want 10.0.0.1", a.Group)
	}
	r.refused("b.test")
	r.add("10.0.0.1")
	r.refused("10.0.0.1")
	r.release(a, 0)
	r.release(r.try("10.0.0.1"), 0)

	r.pass(40 * time.Second)
	r.bind("b.test", "10.0.0.2", "10.0.0.1") // in use, so it is prolonged
	r.pass(40 * time.Second)
	r.bind("b.test", "10.0.0.2", "10.0.0.1")
	r.bind("a.test", "10.0.0.3", "10.0.0.3") // its minute has passed
	r.pass(time.Minute)
	r.bind("b.test", "10.0.0.2", "10.0.0.2")

	r.alias("it", "c.test", "b.test")
	r.bind("c.test", "10.0.0.9", "it")
	r.alias("ip", "10.0.0.3")
	r.bind("a.test", "10.0.0.4", "10.0.0.4")
	r.pass(time.Minute)
	r.bind("a.test", "10.0.0.3", "ip") // in an alias through its group
	if got := r.try("10.0.0.1"); got.Group != "10.0.0.1" {
		r.Errorf("group %s, want 10.0.0.1", got.Group)
	}
	a = r.try("a.test")
	if a.Group != "ip" {
		r.Errorf("group %s, want ip", a.Group)
	}
}

// testBindAndAlias: a host whose alias changes is held back until the answers from before that have ended. If the
// change is undone, the host goes on.
func testBindAndAlias(r *rig) {
	r.alias("it", "first.test")
	r.left("first.test", "it", time.Minute) // it was in the alias before anybody bound it
	r.left("joins.test", "10.0.0.1", time.Minute)
	r.Advance(10 * time.Second)
	r.alias("it", "first.test", "joins.test", "new.test")
	r.left("joins.test", "it", -50*time.Second)
	r.left("new.test", "it", time.Minute)
	r.left("first.test", "it", time.Minute)
	r.Advance(20 * time.Second)
	r.left("joins.test", "it", -30*time.Second)
	r.Advance(31 * time.Second)
	r.left("joins.test", "it", time.Minute)
	r.Advance(time.Second)
	r.alias("it")
	r.left("joins.test", "10.0.0.1", -59*time.Second)
	r.Advance(10 * time.Second)
	r.alias("other", "joins.test")
	r.left("joins.test", "other", -49*time.Second)
	for _, hosts := range [][]string{nil, {"joins.test"}, nil, {"joins.test"}} { // no change makes that longer
		r.Advance(10 * time.Second)
		r.alias("other", hosts...)
	}
	r.left("joins.test", "other", -9*time.Second)
	r.alias("it", "joins.test")
	r.left("joins.test", "it", time.Minute)
	question := []reservation.Binding{{Host: "asked.test", Group: "10.0.0.1"}}
	if _, err := r.Bind(r.Context(), question, reservation.MinLease); err != nil {
		r.Fatal(err)
	}
	if _, err := r.JoinAlias(r.Context(), "other", []string{"asked.test"}); err != nil {
		r.Fatal(err)
	}
	r.left("asked.test", "other", time.Minute) // a question holds nobody back
}

// testBindAndAddress: hosts that are bound to an address that joins or leaves an alias are held back in the same way,
// as are hosts that are bound to it while others may ask the address in its former group.
func testBindAndAddress(r *rig) {
	const addr = "10.0.0.1"
	r.alias("it", addr)
	r.left(addr, "it", time.Minute)
	r.Advance(20 * time.Second)
	r.left("there.test", "it", time.Minute)
	r.Advance(10 * time.Second)
	r.alias("it")
	r.left("there.test", addr, -50*time.Second)
	r.left("new.test", addr, -30*time.Second)
	r.Advance(31 * time.Second)
	r.left("there.test", addr, -19*time.Second)
	r.left("new.test", addr, time.Minute)
	r.alias("it", addr)
	r.left("there.test", "it", time.Minute)
	r.left("new.test", "it", -time.Minute)
	r.left("newer.test", "it", time.Minute)
	r.Advance(61 * time.Second)
	r.left("new.test", "it", time.Minute)
	r.left(addr, "it", time.Minute)
	r.alias("it")
	r.add(addr)
	left := r.try(addr)
	for range 3 { // a lease of the address does not make that longer
		r.Advance(30 * time.Second)
		if _, err := r.ExtendHost(r.Context(), addr, left.Token, lease); err != nil {
			r.Fatalf("ExtendHost: %v", err)
		}
	}
	r.left("last.test", addr, time.Minute)
}

// left binds a host for a minute, and checks for how long the answer holds, to a second: clocks go on.
func (r *rig) left(host, group string, want time.Duration) {
	r.Helper()
	got, err := r.Bind(r.Context(), []reservation.Binding{{Host: host, Group: "10.0.0.1"}}, time.Minute)
	if err != nil || len(got) != 1 || got[0].Group != group || (got[0].Left-want).Abs() > time.Second {
		r.Errorf("Bind(%s) = %v, %v; want %s and %v", host, got, err, group, want)
	}
}

// testBindWhileBusy: a lease prolongs the binding that it uses, and covers what its host is bound
// to.
func testBindWhileBusy(r *rig) {
	r.add("a.test", "b.test", "c.test", "d.test")
	r.bind("a.test", "10.0.0.1", "10.0.0.1")
	a := r.try("a.test")
	r.Advance(50 * time.Second)
	if _, err := r.ExtendHost(r.Context(), "a.test", a.Token, lease); err != nil {
		r.Fatalf("ExtendHost: %v", err)
	}
	r.Advance(50 * time.Second)
	r.bind("a.test", "10.0.0.2", "10.0.0.1")
	r.bind("b.test", "10.0.0.1", "10.0.0.1")
	r.refused("b.test")
	c := r.try("c.test")
	r.bind("c.test", "10.0.0.5", "10.0.0.5")
	r.bind("d.test", "10.0.0.5", "10.0.0.5")
	r.refused("d.test")
	r.release(c, 5*time.Second)
	r.refused("d.test")
	r.pass(5 * time.Second)
	r.try("d.test")
}
