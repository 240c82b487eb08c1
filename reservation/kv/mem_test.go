package kv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/reservationtest"
)

// mem is a KV in RAM.
type mem struct {
	mu     sync.Mutex // guards all below
	values map[string]string
	keys   []string // sorted
	blind  bool     // whether swaps do not compare
}

func newMem() *mem { return &mem{values: map[string]string{}} }

func (m *mem) clone() *mem {
	return &mem{values: maps.Clone(m.values), keys: slices.Clone(m.keys), blind: m.blind}
}

func (m *mem) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(key), nil
}

func (m *mem) get(key string) []byte {
	if v, ok := m.values[key]; ok {
		return []byte(v)
	}
	return nil
}

func (m *mem) CompareAndSwap(_ context.Context, key string, was, to []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, has := m.values[key]
	if !m.blind && (has != (was != nil) || has && have != string(was)) {
		return false, nil
	}
	i, _ := slices.BinarySearch(m.keys, key)
	switch {
	case to == nil && has:
		delete(m.values, key)
		m.keys = slices.Delete(m.keys, i, i+1)
	case to != nil:
		m.values[key] = string(to)
		if !has {
			m.keys = slices.Insert(m.keys, i, key)
		}
	}
	return true, nil
}

func (m *mem) Scan(_ context.Context, from, before string, limit int) (list []Pair, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, _ := slices.BinarySearch(m.keys, from)
	j, _ := slices.BinarySearch(m.keys, before)
	for _, key := range m.keys[i:max(i, min(j, i+limit))] {
		list = append(list, Pair{key, m.get(key)})
	}
	return list, nil
}

// TestStore runs the suite over a KV whose calls are fast enough for a great many hosts. In short runs
// it has as many as the suites below.
func TestStore(t *testing.T) {
	many := 20_000
	if testing.Short() {
		many = 2000
	}
	testStore(t, 0, many, func(m *mem) KV { return m })
}

func testStore(t *testing.T, parallel, many int, of func(*mem) KV) {
	reservationtest.Run(t, func(*testing.T) reservationtest.Bench {
		var clock atomic.Int64
		clock.Store(1_700_000_000_000)
		m := newMem()
		s := New(Config{KV: of(m), ID: "test", Penalty: reservationtest.Penalty, Parallel: parallel,
			Now: func(context.Context) (int64, error) {
				return clock.Load(), nil
			}})
		return reservationtest.Bench{
			Store: s, Many: many, Lazy: true,
			Now:     func() time.Time { return time.UnixMilli(clock.Load()) },
			Advance: func(d time.Duration) { clock.Add(d.Milliseconds()) },
			Lose: func(t *testing.T, host string) {
				h, err := s.read(t.Context(), hostKey(host))
				if err == nil {
					err = s.unqueue(t.Context(), h.Row, host)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// lossy executes a call and then returns an error, as after a lost answer.
type lossy struct {
	*mem
	lose func(key string) bool
}

func (l lossy) CompareAndSwap(ctx context.Context, key string, was, to []byte) (bool, error) {
	ok, err := l.mem.CompareAndSwap(ctx, key, was, to)
	if l.lose(key) {
		return false, errors.New("the answer was lost")
	}
	return ok, err
}

// TestLostAnswers: after a swap whose answer was lost, the store recognizes its own value, and no
// other's.
func TestLostAnswers(t *testing.T) {
	ctx, lost := t.Context(), 0
	kv := lossy{mem: newMem(), lose: func(key string) bool {
		if key[0] == 'q' {
			return false
		}
		lost++
		return true
	}}
	s := New(Config{KV: kv, ID: "test", Now: func(context.Context) (int64, error) { return walkStart, nil }})
	for _, host := range []string{"a", "b"} {
		if added, err := s.AddHost(ctx, host, time.Time{}); err != nil || !added {
			t.Fatalf("AddHost = %v, %v", added, err)
		}
	}
	if err := s.SetAlias(ctx, "it", []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r, err := s.TryReserve(ctx, "a", lease, "")
		if err != nil || r.Token != uint64(i+1) {
			t.Fatalf("TryReserve = %+v, %v; want token %d", r, err, i+1)
		}
		if _, err := s.TryReserve(ctx, "b", lease, ""); !errors.Is(err, reservation.ErrNotNow) {
			t.Errorf("TryReserve of the other = %v; want ErrNotNow", err)
		}
		if err := s.ReleaseHost(ctx, "a", r.Token, time.Time{}); err != nil {
			t.Errorf("ReleaseHost: %v", err)
		}
	}
	if lost == 0 {
		t.Error("no answer was lost")
	}
}

// TestParallel runs the suite with many calls of the KV at once.
func TestParallel(t *testing.T) { testStore(t, 16, 2000, func(m *mem) KV { return m }) }

// gathered is a mem that is a ManyKV. It counts the calls and the keys.
type gathered struct {
	*mem
	calls, keys atomic.Int64
	hold        chan struct{} // a call waits until it is closed; nil: it does not wait
}

func (g *gathered) GetMany(_ context.Context, keys []string) (values [][]byte, err error) {
	g.calls.Add(1)
	g.keys.Add(int64(len(keys)))
	if g.hold != nil {
		<-g.hold
	}
	if keys[0] == "hbroken.test" {
		return nil, errors.New("the store is away")
	}
	for _, key := range keys {
		value, err := g.Get(context.Background(), key)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

// TestMany runs the suite with a KV that reads many keys in one call.
func TestMany(t *testing.T) { testStore(t, 16, 2000, func(m *mem) KV { return &gathered{mem: m} }) }

// TestReadsGather: reads that arrive while mostReads calls are under way go together in the next call.
// Each gets its own value, and an error reaches all reads of its call, and no other.
func TestReadsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const more = 3 * mostKeys / 2
		g := &gathered{mem: newMem(), hold: make(chan struct{})}
		s := New(Config{KV: g, ID: "test", Now: func(context.Context) (int64, error) { return walkStart, nil }})
		var all sync.WaitGroup
		var failed atomic.Int64
		for i := range mostReads + more {
			host := fmt.Sprintf("h%d.test", i)
			if i == 0 {
				host = "broken.test"
			}
			g.CompareAndSwap(t.Context(), hostKey(host), nil, fmt.Appendf(nil, `{"by":%q}`, host))
			all.Go(func() {
				switch c, err := s.read(t.Context(), hostKey(host)); {
				case err != nil:
					failed.Add(1)
				case c.By != host:
					t.Errorf("the record of %s is that of %s", host, c.By)
				}
			})
			synctest.Wait()
		}
		if got := g.calls.Load(); got != mostReads {
			t.Errorf("%d calls under way; want %d", got, mostReads)
		}
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := s.read(ctx, "hlate.test"); !errors.Is(err, context.Canceled) {
				t.Errorf("a read that was canceled while it waited: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(g.hold)
		all.Wait()
		if calls, keys := g.calls.Load(), g.keys.Load(); calls > mostReads+2 || keys != mostReads+more+1 {
			t.Errorf("%d keys in %d calls; want %d in at most %d", keys, calls, mostReads+more+1, mostReads+2)
		}
		if got := failed.Load(); got != 1 {
			t.Errorf("%d reads failed; want the one in the call that failed", got)
		}
	})
}

// moving is a mem that is a TxnKV.
type moving struct{ *mem }

func (m moving) SwapAndMove(ctx context.Context, key string, was, to []byte, before,
	row string) (bool, error) {
	ok, err := m.CompareAndSwap(ctx, key, was, to)
	if ok {
		m.CompareAndSwap(ctx, row, nil, []byte{'.'})
		m.CompareAndSwap(ctx, before, []byte{'.'}, nil)
	}
	return ok, err
}

// TestMover runs the suite with rows that move in the same transaction as their records.
func TestMover(t *testing.T) { testStore(t, 0, 2000, func(m *mem) KV { return moving{m} }) }

// counting counts the calls of a KV.
type counting struct {
	moving
	calls int
}

func (c *counting) Get(ctx context.Context, key string) ([]byte, error) {
	c.calls++
	return c.moving.Get(ctx, key)
}

func (c *counting) CompareAndSwap(ctx context.Context, key string, was, to []byte) (bool, error) {
	c.calls++
	return c.moving.CompareAndSwap(ctx, key, was, to)
}

func (c *counting) SwapAndMove(ctx context.Context, key string, was, to []byte, before,
	row string) (bool, error) {
	c.calls++
	return c.moving.SwapAndMove(ctx, key, was, to, before, row)
}

func (c *counting) Scan(ctx context.Context, from, before string, limit int) ([]Pair, error) {
	c.calls++
	return c.moving.Scan(ctx, from, before, limit)
}

// TestCalls: the cost of a call is its number of round trips.
func TestCalls(t *testing.T) {
	c := &counting{moving: moving{newMem()}}
	s := New(Config{KV: c, ID: "test", Now: func(context.Context) (int64, error) { return walkStart, nil }})
	costs := func(want int, what string, do func(ctx context.Context) error) {
		t.Helper()
		c.calls = 0
		if err := do(t.Context()); err != nil || c.calls != want {
			t.Errorf("%v in %d calls; want %d: %s", err, c.calls, want, what)
		}
	}
	bind := func(ctx context.Context) error {
		_, err := s.Bind(ctx, []reservation.Binding{{Host: "a.test", Group: "a"}}, time.Minute)
		return err
	}
	costs(3, "the host, its group, the swap", bind)
	costs(2, "the host and its group, as the binding lasts", bind)
	costs(2, "the host and its group, as the question binds nothing", func(ctx context.Context) error {
		got, err := s.Bind(ctx, []reservation.Binding{{Host: "b.test", Group: "b"}}, reservation.MinLease)
		if err == nil && got[0].Group != "b" {
			t.Errorf("%+v; want the proposed group", got)
		}
		return err
	})
	if _, err := s.AddHost(t.Context(), "a", time.Time{}); err != nil {
		t.Fatal(err)
	}
	var got reservation.Reservation
	take := func(ctx context.Context) error {
		list, err := s.ReserveNextHost(ctx, lease, 1, "me")
		if err == nil {
			got = list[0]
		}
		return err
	}
	costs(3, "the queue, the record, the swap", take)
	costs(2, "the record, the swap", func(ctx context.Context) error {
		_, err := s.ExtendHost(ctx, "a", got.Token, 2*lease)
		return err
	})
	costs(2, "the record, the swap", func(ctx context.Context) error {
		return s.ReleaseHost(ctx, "a", got.Token, time.Time{})
	})
	costs(3, "the queue, the record, the swap", take)
	costs(3, "the record, the swap, the row", func(ctx context.Context) error {
		return s.DeleteHost(ctx, "a", got.Token, time.Time{})
	})
}
