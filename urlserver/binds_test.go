package urlserver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/reservation"
	"urlserver/reservation/memory"
	"urlserver/urlserver/engine"
)

// slowBinds is a store that takes a while for each host.
type slowBinds struct {
	reservation.Store
	takes time.Duration
}

func (s slowBinds) Bind(ctx context.Context, bindings []reservation.Binding, ttl time.Duration) (
	[]reservation.Bound, error) {
	select {
	case <-time.After(time.Duration(len(bindings)) * s.takes):
		return s.Store.Bind(ctx, bindings, ttl)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bindCalls is a store that counts calls.
type bindCalls struct {
	reservation.Store
	calls int
}

func (s *bindCalls) Bind(ctx context.Context, bindings []reservation.Binding, ttl time.Duration) (
	[]reservation.Bound, error) {
	s.calls++
	return s.Store.Bind(ctx, bindings, ttl)
}

// TestQuestionsBetweenBinds: questions and bindings have different TTLs, so they need separate
// calls. Alternating, they need no more calls than one kind after the other.
func TestQuestionsBetweenBinds(t *testing.T) {
	store := &bindCalls{Store: memory.New(memory.Config{})}
	r := &Reserver{Store: store, Lease: time.Minute, Holder: "me", Log: zerolog.Nop()}
	var binds []engine.Bind
	for i := range 500 {
		binds = append(binds, engine.Bind{Host: fmt.Sprintf("%d.test", i), Proposed: "127.0.0.1",
			TTL: time.Hour, Ask: i%2 == 0})
	}
	r.bind(t.Context(), binds)
	for _, b := range binds {
		if want := time.Hour; b.Group != "127.0.0.1" || !b.Ask && b.Left != want || b.Ask && b.Left >= want {
			t.Fatalf("%+v; want it bound to 127.0.0.1, for %v if it is no question", b, want)
		}
	}
	if store.calls > 8 {
		t.Errorf("%d calls; want 8 at most", store.calls)
	}
}

// If a store cannot bind all hosts in the time of one call, they are bound in several.
func TestBindsOfASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowBinds{memory.New(memory.Config{}), 2 * time.Millisecond}
		r := &Reserver{Store: store, Lease: 4 * time.Second, Holder: "me", Log: zerolog.Nop()}
		var left []engine.Bind
		for i := range 1000 {
			left = append(left, engine.Bind{Host: fmt.Sprintf("%d.test", i),
				Proposed: "127.0.0.1", TTL: time.Hour})
		}
		for step := 1; len(left) > 0; step++ {
			began := time.Now()
			r.bind(t.Context(), left)
			if took := time.Since(began); took > r.Lease/8 {
				t.Fatalf("step %d takes %v; at most %v are for it", step, took, r.Lease/8)
			}
			var again []engine.Bind
			for _, b := range left {
				if b.Group == "" {
					again = append(again, b)
				}
			}
			if len(again) == len(left) {
				t.Fatalf("step %d binds none of %d hosts", step, len(left))
			}
			left = again
		}
	})
}

// slowJoins is a store that takes its time to let hosts join an alias.
type slowJoins struct {
	reservation.Store
	takes time.Duration
}

func (s slowJoins) JoinAlias(ctx context.Context, alias string, hosts []string) ([]string, error) {
	select {
	case <-time.After(s.takes):
		return s.Store.JoinAlias(ctx, alias, hosts)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// If the hosts of many groups cannot join their aliases in the time of one call, they do in several.
func TestJoinsOfASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reserver{Store: slowJoins{slowBinds{memory.New(memory.Config{}), time.Millisecond}, 8 * time.Millisecond},
			Lease: 4 * time.Second, Holder: "me", Log: zerolog.Nop()}
		var left []engine.Bind
		for i := range 200 {
			left = append(left, engine.Bind{Host: fmt.Sprintf("%d.test", i), Addr: netip.MustParseAddr("127.0.0.1"),
				Proposed: "127.0.0.1", Alias: fmt.Sprint("group", i), Joins: true, TTL: time.Hour})
		}
		for step := 1; len(left) > 0; step++ {
			r.bind(t.Context(), left)
			again := slices.DeleteFunc(slices.Clone(left), func(b engine.Bind) bool { return b.Group != "" })
			if len(again) == len(left) {
				t.Fatalf("step %d binds none of %d hosts", step, len(left))
			}
			left = again
		}
	})
}

// TestBindOfAHostTakenOut: somebody has taken a host out of the alias of its rule. It joins again, and the
// hosts that are bound beside it do not wait for that.
func TestBindOfAHostTakenOut(t *testing.T) {
	r := &Reserver{Store: memory.New(memory.Config{}), Lease: time.Minute, Holder: "me", Log: zerolog.Nop()}
	addr := netip.MustParseAddr("127.0.0.1")
	binds := []engine.Bind{
		{Host: "out.test", Addr: addr, Proposed: addr.String(), Alias: "shop", TTL: time.Hour},
		{Host: "other.test", Addr: addr, Proposed: addr.String(), TTL: time.Hour},
	}
	r.bind(t.Context(), binds)
	if of := [2]string{binds[0].Group, binds[1].Group}; of != [2]string{"shop", addr.String()} || r.failure() != "" {
		t.Errorf("bound to %q, %q; want shop and %v, and no failure", of, r.failure(), addr)
	}
	binds = []engine.Bind{{Host: "again.test", Addr: addr, Proposed: addr.String(), Alias: "shop", Joins: true,
		TTL: time.Hour}}
	r.bind(t.Context(), binds)
	if err := r.Store.SetAlias(t.Context(), "shop", []string{"other.test"}); err != nil {
		t.Fatal(err)
	}
	binds[0].Joins = false
	if r.bind(t.Context(), binds); binds[0].Group != "shop" || binds[0].Left <= 0 {
		t.Errorf("a host that was taken out after it was bound is in %s, for %v; want shop, and that it goes on",
			binds[0].Group, binds[0].Left)
	}
}

// failingBinds is a store whose calls of Bind fail after some.
type failingBinds struct {
	reservation.Store
	left int
}

func (s *failingBinds) Bind(ctx context.Context, bindings []reservation.Binding, ttl time.Duration) (
	[]reservation.Bound, error) {
	if s.left--; s.left < 0 {
		return nil, errors.New("away")
	}
	return s.Store.Bind(ctx, bindings, ttl)
}

// TestBindsFailInTheMiddle: a host is in an alias with its address. The call that binds a host again beside it
// fails. The first one counts as not bound: an answer without Covered would have it wait for its address.
func TestBindsFailInTheMiddle(t *testing.T) {
	addr := netip.MustParseAddr("127.0.0.1")
	store := memory.New(memory.Config{})
	if err := store.SetAlias(t.Context(), "farm", []string{"in.test", addr.String()}); err != nil {
		t.Fatal(err)
	}
	for calls := range 4 {
		r := &Reserver{Store: &failingBinds{store, calls}, Lease: time.Minute, Holder: "me", Log: zerolog.Nop()}
		binds := []engine.Bind{
			{Host: fmt.Sprintf("out%d.test", calls), Addr: addr.Next(), Proposed: addr.Next().String(), Alias: "shop",
				TTL: time.Hour},
			{Host: "in.test", Addr: addr, Proposed: addr.String(), TTL: time.Hour},
		}
		if r.bind(t.Context(), binds); binds[1].Group != "" && !binds[1].Covered {
			t.Errorf("%d calls are answered: bound to %q without its address", calls, binds[1].Group)
		}
	}
}
