package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/reservation"
)

// bindThenTry binds a host to a group, and then tries to lease a host of this group.
func bindThenTry(host, group, try string) actor {
	return actor{name: "bind", do: func(r *actorRun, s *Store) {
		if r.bind(s, host, group, lease) != group {
			r.fault(host + " is bound to another group than the one proposed")
		}
		r.tryBeside(s, try)
	}}
}

// binder binds a host to a group. No answer may name another group than an answer before.
func binder(name, host, group string) actor {
	return actor{name: name, do: func(r *actorRun, s *Store) {
		got := r.bind(s, host, group, lease)
		r.then(func(w *state) {
			if len(w.noted) > 0 && w.noted[0] != got {
				w.faults = append(w.faults, fmt.Sprintf("%s is told that %s is in %s, after %s", name, host,
					got, w.noted[0]))
			}
			w.note(got)
		})
	}}
}

// asker asks for the group of a host after some time, and binds nothing. If somebody had the host
// before the question and still has it, the answer must be the group of that lease.
func asker(host, other string) actor {
	return actor{name: "ask", do: func(r *actorRun, s *Store) {
		r.call(s)
		r.then(func(w *state) {
			for _, g := range w.live(host) {
				w.note(g.Group)
			}
		})
		got := r.bind(s, host, other, reservation.MinLease)
		r.then(func(w *state) {
			for _, g := range w.live(host) {
				if len(w.noted) > 0 && got != g.Group {
					w.faults = append(w.faults, fmt.Sprintf("%s is in %s while %s has %+v", host, got, g.by,
						g.Reservation))
				}
			}
		})
	}}
}

// live returns the leases of a host that have not ended.
func (s *state) live(host string) (list []grant) {
	for _, g := range s.grants {
		if g.Host == host && g.LeaseEnd.UnixMilli() > s.now {
			list = append(list, g)
		}
	}
	return list
}

func (r *actorRun) bind(s *Store, host, group string, ttl time.Duration) string {
	got, err := s.Bind(context.Background(), []reservation.Binding{{Host: host, Group: group}}, ttl)
	if err != nil {
		r.fault("bind: " + err.Error())
		return ""
	}
	return got[0].Group
}

// call makes a call of the KV, before and after which others may call and time may pass.
func (r *actorRun) call(s *Store) {
	if _, err := s.cfg.KV.Get(context.Background(), "x"); err != nil {
		r.fault(err.Error())
	}
}

// joiner has a host join an alias.
func joiner(name, alias, host string) actor {
	return actor{name: name, do: func(r *actorRun, s *Store) { r.join(s, alias, host) }}
}

// joinThenTry has a host join an alias, and then tries to lease it.
func joinThenTry(alias, host string) actor {
	return actor{name: "join", do: func(r *actorRun, s *Store) {
		r.join(s, alias, host)
		r.tryBeside(s, host)
	}}
}

func (r *actorRun) join(s *Store, alias, host string) {
	got, err := s.JoinAlias(context.Background(), alias, []string{host})
	if err != nil || !slices.Equal(got, []string{alias}) {
		r.fault(fmt.Sprintf("%s joins %s: %q, %v", host, alias, got, err))
	}
}

// extender leases a host, extends the lease, and releases it.
func extender(name, host string) actor {
	return actor{name: name, do: func(r *actorRun, s *Store) {
		got, err := s.TryReserve(context.Background(), host, lease, name)
		if !r.has(s, got, err) {
			return
		}
		lost := got.LeaseEnd.UnixMilli() <= r.now
		end, err := s.ExtendHost(context.Background(), host, got.Token, 2*lease)
		switch {
		case errors.Is(err, reservation.ErrStale):
			r.then(func(w *state) {
				if got.LeaseEnd.UnixMilli() > w.now {
					w.faults = append(w.faults, name+" extends a live lease: "+err.Error())
				}
			})
			return
		case err != nil || lost:
			r.fault(fmt.Sprintf("%s extends its lease, lost %v: %v", name, lost, err))
			return
		}
		r.then(func(w *state) { w.extended(got, end) })
		longer := got
		longer.LeaseEnd = end
		r.release(s, longer)
	}}
}

// deleter has the lease that busy made, and deletes the host.
func deleter(host string) actor {
	return actor{name: "delete", do: func(r *actorRun, s *Store) {
		got := reservation.Reservation{Host: host, Token: 1,
			LeaseEnd: time.UnixMilli(walkStart - 1 + walkLease)}
		r.then(func(w *state) { w.given(s.cfg.ID, got) })
		r.call(s)
		r.then(func(w *state) { w.returned(got) })
		if err := s.DeleteHost(context.Background(), host, 1, time.Time{}); err != nil {
			r.fault("delete: " + err.Error())
		}
	}}
}

// adder adds a host, and tries to lease it. If the host was not there, the call that deleted it has
// ended its lease.
func adder(host string) actor {
	return actor{name: "add", do: func(r *actorRun, s *Store) {
		added, err := s.AddHost(context.Background(), host, time.Time{})
		if err != nil {
			r.fault("add: " + err.Error())
		}
		if added {
			r.then(func(w *state) { w.note("added") })
		}
		got, err := s.TryReserve(context.Background(), host, lease, "add")
		switch {
		case err == nil:
			r.then(func(w *state) { w.given(s.cfg.ID, got) })
		case added || !errors.Is(err, reservation.ErrNotNow) && !errors.Is(err, reservation.ErrUnknown):
			r.fault(fmt.Sprintf("add, new %v: %v", added, err))
		}
	}}
}

// bound prepares, and binds a host to a group.
func bound(host, group string, prepare func(*testing.T, *Store)) func(*testing.T, *Store) {
	return func(t *testing.T, s *Store) {
		t.Helper()
		prepare(t, s)
		if _, err := s.Bind(t.Context(), []reservation.Binding{{Host: host, Group: group}}, lease); err != nil {
			t.Fatal(err)
		}
	}
}

// allJoined checks that no host has been left out of an alias.
func allJoined(alias string, hosts ...string) func(*state, map[string]bool) string {
	return func(s *state, served map[string]bool) string {
		store := New(Config{KV: s.mem.clone(), ID: "check"})
		_, got, err := store.GetAlias(context.Background(), alias)
		if !s.crashed && (err != nil || !slices.Equal(got, hosts)) || len(served) != len(hosts) {
			return fmt.Sprintf("%s has %q, %v; served are %v; want %q", alias, got, err, served, hosts)
		}
		return ""
	}
}

// deletedOnce checks that a host is there at the end if it was added after it was deleted.
func deletedOnce(host string) func(*state, map[string]bool) string {
	return func(s *state, served map[string]bool) string {
		if want := slices.Contains(s.noted, "added"); !s.crashed && served[host] != want {
			return fmt.Sprintf("%s is served: %v; want %v", host, served[host], want)
		}
		return ""
	}
}

// callScenarios are about Bind, JoinAlias, ExtendHost and DeleteHost.
var callScenarios = []scenario{
	{name: "a busy host is bound", prepare: busy("b", added("", nil, "a", "b")), hosts: []string{"a", "b"},
		actors: []actor{releaser("b"), bindThenTry("b", "a", "a")}},
	{name: "a host is bound to a busy group", prepare: busy("a", added("", nil, "a", "b")),
		hosts: []string{"a", "b"}, actors: []actor{releaser("a"), bindThenTry("b", "a", "b")}},
	{name: "a host is bound while it is leased", prepare: added("", nil, "a", "b"),
		hosts: []string{"a", "b"}, actors: []actor{tryThenRelease("one", "b"), bindThenTry("b", "a", "a")}},
	{name: "two bind a host to two groups", prepare: busy("b", added("", nil, "b")), hosts: []string{"b"},
		actors: []actor{binder("one", "b", "a"), binder("two", "b", "c")}},
	{name: "two hosts join an alias", prepare: added("", nil, "a", "b"), hosts: []string{"a", "b"},
		actors: []actor{joiner("one", "it", "a"), joiner("two", "it", "b")},
		end:    allJoined("it", "a", "b"), atOnce: "two"},
	{name: "a host joins the alias of a busy one",
		prepare: busy("a", added("it", []string{"a"}, "a", "b")), hosts: []string{"a", "b"},
		actors: []actor{releaser("a"), joinThenTry("it", "b")}, atOnce: "one"},
	{name: "a lease is extended", prepare: added("", nil, "a"), hosts: []string{"a"},
		actors: []actor{extender("one", "a"), nextThenRelease("two")},
		ticks:  []int64{walkLease + walkPenalty, walkLease + walkPenalty}},
	{name: "a lease under a binding is extended", prepare: bound("b", "a", added("", nil, "a", "b")),
		hosts: []string{"a", "b"}, actors: []actor{extender("one", "b"), asker("b", "c")},
		ticks: []int64{walkLease + walkPenalty}},
	{name: "a busy host is deleted and added", prepare: busy("a", added("", nil, "a")),
		hosts: []string{"a"}, actors: []actor{deleter("a"), adder("a")}, end: deletedOnce("a")},
	{name: "a busy host of an alias is deleted",
		prepare: busy("a", added("it", []string{"a", "b"}, "a", "b")), hosts: []string{"a", "b"},
		actors: []actor{deleter("a"), tryThenRelease("two", "b")},
		end: func(s *state, served map[string]bool) string {
			if !served["b"] || served["a"] && !s.crashed {
				return fmt.Sprintf("served are %v; want b alone", served)
			}
			return ""
		}},
}

// TestWalkBites: the same walk finds the fault of a store that swaps without comparing, and of calls
// that leave out a swap.
func TestWalkBites(t *testing.T) {
	blind := aliasScenarios[1]
	blind.blind = true
	_, _, fault := blind.explore(t)
	if fault == "" {
		t.Error("over a store that does not compare the walk finds nothing")
	}
	t.Log(fault)
	longer := fmt.Sprint(walkStart + 2*walkLease)
	for _, c := range []struct{ name, actor, key, has string }{
		{"a busy host is bound", "bind", "ha", "waits"},
		{"a host is bound to a busy group", "bind", "hb", "bound"},
		{"a host is bound while it is leased", "bind", "ha", "waits"},
		{"two bind a host to two groups", "one", "hb", "bound"},
		{"two hosts join an alias", "one", "ait", "hosts"},
		{"a host joins the alias of a busy one", "join", "hb", "alias"},
		{"a lease is extended", "one", "ha", `"end":` + longer},
		{"a lease under a binding is extended", "one", "hb", `"bound_to":` + longer},
		{"a busy host is deleted and added", "delete", "ha", ""},
		{"a busy host of an alias is deleted", "delete", "ha", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := callScenarios[slices.IndexFunc(callScenarios, func(sc scenario) bool { return sc.name == c.name })]
			sc.lost = func(actor string, call call) bool {
				return actor == c.actor && call.op == 'c' && call.key == c.key &&
					strings.Contains(string(call.to), c.has)
			}
			states, _, fault := sc.explore(t)
			if fault == "" {
				t.Errorf("without %s's swap of %s the walk finds nothing in %d states", c.actor, c.key, states)
			}
			t.Log(fault)
		})
	}
}
