package kv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/reservation"
)

// losing is a KV whose swaps fail because another process is always faster.
type losing struct {
	*mem
	swaps int
}

func (l *losing) CompareAndSwap(context.Context, string, []byte, []byte) (bool, error) {
	l.swaps++
	return false, nil
}

// TestRetriesPause: a call that always loses tries again several times, after growing pauses, and
// gives up. It also ends with its context.
func TestRetriesPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &losing{mem: newMem()}
		s := New(Config{KV: kv, ID: "test", Now: func(context.Context) (int64, error) { return walkStart, nil }})
		for what, call := range map[string]func(ctx context.Context) error{
			"AddHost": func(ctx context.Context) error {
				_, err := s.AddHost(ctx, "a.test", time.Time{})
				return err
			},
			"JoinAlias": func(ctx context.Context) error {
				_, err := s.JoinAlias(ctx, "it", []string{"a.test"})
				return err
			},
			"Bind": func(ctx context.Context) error {
				_, err := s.Bind(ctx, []reservation.Binding{{Host: "a.test", Group: "10.0.0.1"}}, time.Minute)
				return err
			},
		} {
			kv.swaps = 0
			began := time.Now()
			err := call(t.Context())
			if took := time.Since(began); !errors.Is(err, errBusy) || kv.swaps != tries ||
				took < time.Second || took > 10*time.Second {
				t.Errorf("%s: %v after %d tries in %v; want errBusy after %d in some seconds", what,
					err, kv.swaps, took, tries)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			began = time.Now()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) ||
				time.Since(began) != 100*time.Millisecond {
				t.Errorf("%s: %v after %v; want it to end with its time", what, err, time.Since(began))
			}
			cancel()
		}
	})
}

// slow is a KV whose calls take some ten milliseconds, as those of a store under load do.
type slow struct{ *mem }

func (s slow) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.sleep(ctx); err != nil {
		return nil, err
	}
	return s.mem.Get(ctx, key)
}

func (s slow) CompareAndSwap(ctx context.Context, key string, was, to []byte) (bool, error) {
	if err := s.sleep(ctx); err != nil {
		return false, err
	}
	return s.mem.CompareAndSwap(ctx, key, was, to)
}

func (slow) sleep(ctx context.Context) error {
	time.Sleep(10*time.Millisecond + rand.N(20*time.Millisecond))
	return ctx.Err()
}

// TestJoinsAtOnce: many callers add a host each to one alias, in one process and in many. Each call
// ends well, however many changes come before it, if its context lasts.
func TestJoinsAtOnce(t *testing.T) {
	const callers = 32
	for _, processes := range []int{1, 4, callers} {
		synctest.Test(t, func(t *testing.T) {
			kv, began := slow{newMem()}, time.Now()
			var all sync.WaitGroup
			var s *Store
			for n := range callers {
				if n%(callers/processes) == 0 {
					s = New(Config{KV: kv, ID: fmt.Sprint("process", n),
						Now: func(context.Context) (int64, error) { return walkStart, nil }})
				}
				s := s
				all.Go(func() {
					if _, err := s.JoinAlias(t.Context(), "it", []string{fmt.Sprintf("h%02d.test", n)}); err != nil {
						t.Errorf("%d processes: caller %d: %v", processes, n, err)
					}
				})
			}
			all.Wait()
			if _, hosts, err := s.GetAlias(t.Context(), "it"); err != nil || len(hosts) != callers {
				t.Errorf("%d processes: the alias has %d hosts, %v; want %d", processes, len(hosts), err, callers)
			}
			t.Logf("%d processes: all have joined after %v", processes, time.Since(began))
		})
	}
}

// TestJoinsInTime: the calls of one process that add a host each to one alias at once end well within the time
// that each has. One that was given up before it came to its turn adds nothing.
func TestJoinsInTime(t *testing.T) {
	const callers = 16
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{KV: slow{newMem()}, ID: "test",
			Now: func(context.Context) (int64, error) { return walkStart, nil }})
		var all sync.WaitGroup
		joins := func(ctx context.Context, host string, want error) {
			all.Go(func() {
				a, err := s.JoinAlias(ctx, "it", []string{host})
				if !errors.Is(err, want) || err == nil && a[0] != "it" {
					t.Errorf("%s: joined %q, %v; want %v", host, a, err, want)
				}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		joins(ctx, "h.test", nil)
		time.Sleep(200 * time.Millisecond) // so that it has its turn, and the others wait
		joins(short, "short.test", context.DeadlineExceeded)
		for n := range callers - 1 {
			joins(ctx, fmt.Sprintf("h%02d.test", n), nil)
		}
		all.Wait()
		if _, hosts, err := s.GetAlias(t.Context(), "it"); err != nil || len(hosts) != callers {
			t.Errorf("the alias has %q, %v; want %d hosts", hosts, err, callers)
		}
	})
}

// TestJoinsOfManyHosts: so many callers at once add so many hosts each to one alias. All join well within the time
// that each has.
func TestJoinsOfManyHosts(t *testing.T) {
	const callers, each = 16, 16
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{KV: slow{newMem()}, ID: "test", Parallel: 16,
			Now: func(context.Context) (int64, error) { return walkStart, nil }})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for n := range callers {
			all.Go(func() {
				var hosts []string
				for i := range each {
					hosts = append(hosts, fmt.Sprintf("h%02d.%02d.test", i, n))
				}
				if _, err := s.JoinAlias(ctx, "it", hosts); err != nil {
					t.Errorf("caller %d: %v", n, err)
				}
			})
		}
		all.Wait()
		if _, hosts, err := s.GetAlias(t.Context(), "it"); err != nil || len(hosts) != callers*each {
			t.Errorf("the alias has %d hosts, %v; want %d", len(hosts), err, callers*each)
		}
	})
}

// TestJoinOfADamagedRecord: of calls that join at once, one is for a host whose record is damaged. It fails, and
// the others join.
func TestJoinOfADamagedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMem()
		if ok, err := m.CompareAndSwap(t.Context(), hostKey("h2.test"), nil, []byte("?")); !ok || err != nil {
			t.Fatal(ok, err)
		}
		s := New(Config{KV: slow{m}, ID: "test", Parallel: 16,
			Now: func(context.Context) (int64, error) { return walkStart, nil }})
		var all sync.WaitGroup
		for n := range 6 {
			all.Go(func() {
				host := fmt.Sprintf("h%d.test", n)
				if _, err := s.JoinAlias(t.Context(), "it", []string{host}); (err != nil) != (n == 2) {
					t.Errorf("%s: %v; want an error for the one whose record is damaged", host, err)
				}
			})
		}
		all.Wait()
		if _, hosts, err := s.GetAlias(t.Context(), "it"); err != nil || len(hosts) != 5 {
			t.Errorf("the alias has %q, %v; want five hosts", hosts, err)
		}
	})
}

// TestJoinsAfterAFailure: the call that joins the hosts of others fails. The others join nonetheless.
func TestJoinsAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{KV: slow{newMem()}, ID: "test",
			Now: func(context.Context) (int64, error) { return walkStart, nil }})
		var all sync.WaitGroup
		for n, lasts := range []time.Duration{time.Minute, time.Second, time.Minute, time.Minute} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), lasts)
				defer cancel()
				_, err := s.JoinAlias(ctx, "it", []string{fmt.Sprintf("h%d.test", n)})
				ends := lasts < time.Minute
				if ends != errors.Is(err, context.DeadlineExceeded) || !ends && err != nil {
					t.Errorf("caller %d: %v", n, err)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		all.Wait()
		if _, hosts, err := s.GetAlias(t.Context(), "it"); err != nil || len(hosts) < 3 {
			t.Errorf("the alias has %q, %v; want those of three callers at least", hosts, err)
		}
		if len(s.joins) > 0 {
			t.Errorf("%d aliases are waited for; want none", len(s.joins))
		}
	})
}

// followed is a KV where another process begins a change of an alias when the first one is over.
type followed struct{ *mem }

func (f followed) CompareAndSwap(ctx context.Context, key string, was, to []byte) (bool, error) {
	ok, err := f.mem.CompareAndSwap(ctx, key, was, to)
	var c change
	if ok && key == changeKey && json.Unmarshal(to, &c) == nil && c.ID == 1 && c.Phase == over {
		next, _ := json.Marshal(change{By: "another.1", ID: 2, Phase: freezing, Alias: "other",
			Hosts: []string{"b.test"}})
		return f.mem.CompareAndSwap(ctx, key, to, next)
	}
	return ok, err
}

// TestChangeEndsWithItsOwn: a call that changes an alias returns when its change is over, and leaves the
// change that another process has begun meanwhile to that process. The next change completes that one.
func TestChangeEndsWithItsOwn(t *testing.T) {
	s := New(Config{KV: followed{newMem()}, ID: "test",
		Now: func(context.Context) (int64, error) { return walkStart, nil }})
	if err := s.SetAlias(t.Context(), "it", []string{"a.test"}); err != nil {
		t.Fatal(err)
	}
	if c, _, err := s.readChange(t.Context()); err != nil || c.ID != 2 || c.Phase != freezing {
		t.Errorf("after the first change: change %d in phase %d, %v; want the second one untouched", c.ID, c.Phase, err)
	}
	if _, err := s.JoinAlias(t.Context(), "it", []string{"c.test"}); err != nil {
		t.Fatal(err)
	}
	for alias, want := range map[string][]string{"it": {"a.test", "c.test"}, "other": {"b.test"}} {
		if _, hosts, err := s.GetAlias(t.Context(), alias); err != nil || !slices.Equal(hosts, want) {
			t.Errorf("alias %s has %q, %v; want %q", alias, hosts, err, want)
		}
	}
}

// counted is a KV that counts the keys that are read.
type counted struct {
	*mem
	reads atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string) ([]byte, error) {
	c.reads.Add(1)
	return c.mem.Get(ctx, key)
}

func (c *counted) Scan(ctx context.Context, from, before string, limit int) ([]Pair, error) {
	list, err := c.mem.Scan(ctx, from, before, limit)
	c.reads.Add(1 + int64(len(list)))
	return list, err
}

// TestOneJanitor: however many services sweep, they read the records about once a period. If the
// sweeping service dies, another one takes over.
func TestOneJanitor(t *testing.T) {
	const hosts, periods, period = 500, 20, 30_000 // ms
	reads := map[int]int64{}
	for _, services := range []int{1, 8} {
		now, kv := int64(walkStart), &counted{mem: newMem()}
		var all []*Store
		for n := range services {
			all = append(all, New(Config{KV: kv, ID: fmt.Sprint("service", n),
				Now: func(context.Context) (int64, error) {
					return now, nil
				}}))
		}
		for n := range hosts {
			if _, err := all[0].AddHost(t.Context(), fmt.Sprintf("h%d.test", n), time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		sweep := func(all []*Store) (read int64) {
			before := kv.reads.Load()
			for i := range periods {
				for n, s := range all {
					now = walkStart + int64(i*period+n*period/len(all))
					if err := s.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			return kv.reads.Load() - before
		}
		sweep(all[:1]) // the first sweep of a service always reads all records
		reads[services] = sweep(all)
	}
	if one, many := reads[1], reads[8]; one < periods*hosts || many > 2*one {
		t.Errorf("in %d periods one service reads %d keys, eight read %d; want about as many", periods, one, many)
	}
}

// TestNextJanitor: a queue entry that a crash removed is restored although the service that swept
// has died.
func TestNextJanitor(t *testing.T) {
	now, m := int64(walkStart), newMem()
	config := func(id string) Config {
		return Config{KV: m, ID: id, Now: func(context.Context) (int64, error) { return now, nil }}
	}
	dies, lives := New(config("dies")), New(config("lives"))
	sweep := func(s *Store, at int64) {
		now = walkStart + at
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep(lives, 0)
	for at := int64(10_000); at < 100_000; at += 30_000 {
		sweep(dies, at)
		sweep(lives, at+10_000)
	}
	if _, err := lives.AddHost(t.Context(), "a.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	rows, _ := m.Scan(t.Context(), "q", "r", 10)
	if ok, err := m.CompareAndSwap(t.Context(), rows[0].Key, rows[0].Value, nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
	sweep(lives, 110_000+30_000)
	sweep(lives, 110_000+60_000)
	if got, err := lives.ReserveNextHost(t.Context(), time.Minute, 1, ""); err != nil ||
		got[0].Host != "a.test" {
		t.Errorf("ReserveNextHost = %+v, %v; want what the crash had taken out of the queue", got, err)
	}
}

// TestAliasOfADamagedRecord: a record that a change of an alias would concern is damaged. The change fails, and
// those of other hosts do not.
func TestAliasOfADamagedRecord(t *testing.T) {
	for name, damaged := range map[string]string{
		"new host": hostKey("b.test"), "former host": hostKey("c.test"), "other alias": aliasKey("other"),
	} {
		t.Run(name, func(t *testing.T) {
			m := newMem()
			s := New(Config{KV: m, ID: "test", Now: func(context.Context) (int64, error) { return walkStart, nil }})
			s.sleep = func(context.Context, time.Duration) error { return nil }
			set := func(alias string, hosts ...string) error { return s.SetAlias(t.Context(), alias, hosts) }
			if err := firstOf(set("it", "c.test"), set("other", "b.test")); err != nil {
				t.Fatal(err)
			}
			was := m.get(damaged)
			if ok, err := m.CompareAndSwap(t.Context(), damaged, was, []byte("?")); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if err := set("it", "a.test", "b.test"); !errors.Is(err, errDamaged) {
				t.Errorf("SetAlias: %v; want an error for the damaged record", err)
			}
			_, err := s.JoinAlias(t.Context(), "it", []string{"a.test", "b.test"})
			if (err != nil) != (name != "other alias") || err != nil && !errors.Is(err, errDamaged) {
				t.Errorf("JoinAlias: %v; want an error unless only the alias that b.test stays in is damaged", err)
			}
			if err := set("third", "x.test", "y.test"); err != nil {
				t.Errorf("SetAlias of another alias: %v", err)
			}
			if _, err := s.Bind(t.Context(), []reservation.Binding{{Host: "a.test", Group: "10.0.0.1"}},
				time.Minute); err != nil {
				t.Errorf("Bind of a host beside the damaged record: %v", err)
			}
		})
	}
}
