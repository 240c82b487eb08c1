package redis

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
)

const lease = time.Minute

// realStore is a store with Redis' own clock, and its own prefix.
func realStore(t testing.TB, penalty time.Duration, addrs ...string) *Store {
	t.Helper()
	s := patient(New(Config{Addrs: addrs, Prefix: "p:", Penalty: penalty}))
	t.Cleanup(s.Close)
	return s
}

// queues returns the queues that a group is in, and how often.
func queues(t *testing.T, s *Store, id string) (wait, ready, busy int) {
	t.Helper()
	list, err := do(t, s, []string{"LRANGE"}, "p:chg_ready{chg}", "0", "-1").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		if one == id {
			ready++
		}
	}
	if _, err := do(t, s, []string{"ZSCORE"}, "p:chg_wait{chg}", id).AsFloat64(); err == nil {
		wait++
	}
	if _, err := do(t, s, []string{"ZSCORE"}, "p:chg_busy{chg}", id).AsFloat64(); err == nil {
		busy++
	}
	return wait, ready, busy
}

// in checks that a group is in one queue, or ("") in none.
func in(t *testing.T, s *Store, id, want string) {
	t.Helper()
	wait, ready, busy := queues(t, s, id)
	got := map[[3]int]string{{0, 0, 0}: "", {1, 0, 0}: "wait", {0, 1, 0}: "ready", {0, 0, 1}: "busy"}
	if name, one := got[[3]int{wait, ready, busy}]; !one || name != want {
		t.Errorf("%s stands in wait %d, ready %d, busy %d times; want %q", id, wait, ready, busy, want)
	}
}

func text(t *testing.T, s *Store, want string, key string, command ...string) {
	t.Helper()
	args := command[1:]
	if got, _ := do(t, s, command[:1], "p:"+key, args...).ToString(); got != want {
		t.Errorf("%s %s %q = %q; want %q", command[0], key, args, got, want)
	}
}

// TestKeys follows documents through the keys that other programs read.
func TestKeys(t *testing.T) {
	s, ctx := realStore(t, time.Second, redistest.Start(t).Addr()), t.Context()
	const id, group = "10.0.0.1", "CHG{chg}:10.0.0.1"
	if err := s.AddDocuments(ctx, id, time.Time{}, "c1", 3); err != nil {
		t.Fatal(err)
	}
	if err := s.AddDocuments(ctx, id, time.Now().Add(time.Hour), "", 1); err != nil {
		t.Fatal(err)
	}
	in(t, s, id, "wait")
	text(t, s, "4", group, "HGET", "c")
	text(t, s, "4", "chg_total{chg}", "GET")
	text(t, s, "3", "chg_exec{chg}", "HGET", "c1")
	text(t, s, "1", "chg_exec{chg}", "HGET", "DEFAULT")
	if err := s.Work(ctx); err != nil {
		t.Fatal(err)
	}
	in(t, s, id, "ready")
	got, err := s.ReserveNextHost(ctx, lease, 5, "daemon-1")
	if err != nil || len(got) != 1 || got[0].Host != id {
		t.Fatalf("ReserveNextHost = %+v, %v; want %s", got, err, id)
	}
	in(t, s, id, "busy")
	token := got[0].Token
	text(t, s, strconv.FormatUint(token, 10), group, "HGET", "t")
	text(t, s, "daemon-1", group, "HGET", "h")
	text(t, s, strconv.FormatUint(token, 10), "chg_token{chg}", "GET")
	for _, step := range []struct {
		crawl string
		n     int
		left  int64
	}{{crawl: "c1", n: 2, left: 2}, {n: 1, left: 1}, {crawl: "c1", n: 9, left: 0}} {
		if left, err := s.Done(ctx, id, token, step.crawl, step.n); err != nil || left != step.left {
			t.Errorf("Done(%s, %d) = %d, %v; want %d", step.crawl, step.n, left, err, step.left)
		}
	}
	text(t, s, "0", "chg_total{chg}", "GET") // never below 0
	text(t, s, "", "chg_exec{chg}", "HGET", "c1")
	in(t, s, id, "busy") // without documents, but reserved
	if _, err := s.Done(ctx, id, token+1, "c1", 1); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("Done with another token = %v; want ErrStale", err)
	}
	next := time.Now().Add(time.Hour)
	if err := s.ReleaseHost(ctx, id, token, next); err != nil {
		t.Fatal(err)
	}
	in(t, s, id, "")
	text(t, s, decimal(reservation.Millis(next)), group, "HGET", "n")
	text(t, s, "", group, "HGET", "t")
	if ms, _ := do(t, s, []string{"PTTL"}, "p:"+group).AsInt64(); ms <= 0 {
		t.Errorf("the hash of an empty group has %d ms to live; want until n", ms)
	}
	if err := s.AddDocuments(ctx, id, time.Time{}, "c2", 1); err != nil {
		t.Fatal(err)
	}
	in(t, s, id, "wait")
	text(t, s, decimal(reservation.Millis(next)), "chg_wait{chg}", "ZSCORE", id)
	if ms, _ := do(t, s, []string{"PTTL"}, "p:"+group).AsInt64(); ms != -1 {
		t.Errorf("the hash of a group with documents has %d ms to live; want for ever", ms)
	}
	if groups, err := s.Bind(ctx, []reservation.Binding{{Host: "a.test", Group: id}},
		time.Hour); err != nil || groups[0].Group != id {
		t.Errorf("Bind = %v, %v", groups, err)
	}
	text(t, s, id, "chg_host{chg}:a.test", "GET")
	if ms, _ := do(t, s, []string{"PTTL"}, "p:chg_host{chg}:a.test").AsInt64(); ms <= 0 {
		t.Errorf("a binding has %d ms to live", ms)
	}
}

// TestOneQueue: after any operation a group is in one queue at most, and a released group is in the
// right one.
func TestOneQueue(t *testing.T) {
	s, ctx := realStore(t, time.Second, redistest.Start(t).Addr()), t.Context()
	add := func(earliest time.Time) {
		t.Helper()
		if _, err := s.AddHost(ctx, "a.test", earliest); err != nil {
			t.Fatal(err)
		}
	}
	work := func() {
		t.Helper()
		if err := s.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
	}
	add(time.Now().Add(time.Hour))
	add(time.Time{})
	in(t, s, "a.test", "wait")
	work()
	add(time.Time{})
	in(t, s, "a.test", "ready")
	got, err := s.TryReserve(ctx, "a.test", lease, "")
	if err != nil {
		t.Fatal(err)
	}
	add(time.Time{})
	work()
	in(t, s, "a.test", "busy")
	if err := s.ReleaseHost(ctx, "a.test", got.Token, time.Time{}); err != nil {
		t.Fatal(err)
	}
	in(t, s, "a.test", "ready")
	work()
	in(t, s, "a.test", "ready")
	if got, err = s.TryReserve(ctx, "a.test", lease, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.ReleaseHost(ctx, "a.test", got.Token, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	work()
	in(t, s, "a.test", "wait")
	if stats, err := s.Stats(ctx); err != nil || stats.Repaired != 0 {
		t.Errorf("Stats = %+v, %v; want nothing repaired", stats, err)
	}
}

// TestForeignGroup: the janitor finds a group that another program has left in no queue.
func TestForeignGroup(t *testing.T) {
	s, ctx := realStore(t, time.Second, redistest.Start(t).Addr()), t.Context()
	do(t, s, []string{"HSET"}, "p:CHG{chg}:10.0.0.9", "c", "2")
	do(t, s, []string{"HSET"}, "p:CHG{chg}:10.0.0.8", "c", "0", "n", "5")
	if err := s.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := s.ReserveNextHost(ctx, lease, 5, "")
	if err != nil || len(got) != 1 || got[0].Host != "10.0.0.9" {
		t.Errorf("ReserveNextHost = %+v, %v; want 10.0.0.9", got, err)
	}
}

// TestRealClock loses a lease by Redis' own clock.
func TestRealClock(t *testing.T) {
	const short, penalty = 50 * time.Millisecond, 100 * time.Millisecond
	s, ctx := realStore(t, penalty, redistest.Start(t).Addr()), t.Context()
	if _, err := s.AddHost(ctx, "a.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	first, err := s.TryReserve(ctx, "a.test", short, "")
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Until(first.LeaseEnd); d > short {
		t.Errorf("the lease ends in %v, want at most %v", d, short)
	}
	for {
		second, err := s.TryReserve(ctx, "a.test", short, "")
		if errors.Is(err, reservation.ErrNotNow) {
			continue // until the time has come, or the test times out
		}
		if err != nil {
			t.Fatal(err)
		}
		if gap := second.LeaseEnd.Sub(first.LeaseEnd); gap < short+penalty {
			t.Errorf("reserved again after %v, want no sooner than the penalty", gap-short)
		}
		if err := s.ReleaseHost(ctx, "a.test", first.Token, time.Time{}); !errors.Is(err,
			reservation.ErrStale) {
			t.Errorf("ReleaseHost by the first = %v; want ErrStale", err)
		}
		return
	}
}

// TestUntilIsAheadOfLeases: a restart may lose the writes of some seconds, but not the ends of the
// leases granted in them.
func TestUntilIsAheadOfLeases(t *testing.T) {
	const lease = 80 * time.Second
	b := bench(t, 0, redistest.Start(t).Addr())
	s := b.Store.(*Store)
	for i := range 50 {
		host := fmt.Sprintf("h%d.test", i)
		if _, err := s.AddHost(t.Context(), host, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.TryReserve(t.Context(), host, lease, ""); err != nil {
			t.Fatal(err)
		}
		until, err := do(t, s, []string{"GET"}, s.cfg.Prefix+"chg_until{chg}").AsInt64()
		if least := b.Now().Add(lease + lease/8).UnixMilli(); err != nil || until < least ||
			until > least+lease.Milliseconds()/8 {
			t.Fatalf("chg_until after %d leases is %d, %v; want %d to an eighth of the lease more", i+1,
				until, err, least)
		}
		b.Advance(time.Second)
	}
}

// TestForeignGroupInQueues: another program adds groups with the keys that it may rely on, and
// nothing else. They are reserved at once, and no program loses its group.
func TestForeignGroupInQueues(t *testing.T) {
	s, ctx := realStore(t, time.Second, redistest.Start(t).Addr()), t.Context()
	set := func(command string, args ...string) {
		t.Helper()
		if err := do(t, s, []string{command}, "p:"+args[0], args[1:]...).Error(); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(time.Hour).UnixMilli()
	set("HSET", "CHG{chg}:10.0.0.1", "n", "5", "c", "1")
	set("ZADD", "chg_wait{chg}", "5", "10.0.0.1")
	set("HSET", "CHG{chg}:10.0.0.2", "n", "5", "c", "1")
	set("RPUSH", "chg_ready{chg}", "10.0.0.2", "10.0.0.2")
	set("HSET", "CHG{chg}:10.0.0.3", "n", decimal(end), "c", "1")
	set("RPUSH", "chg_ready{chg}", "10.0.0.3") // too early
	set("HSET", "CHG{chg}:10.0.0.4", "n", "5", "c", "1", "t", "7", "h", "other")
	set("ZADD", "chg_busy{chg}", decimal(end), "10.0.0.4")
	set("RPUSH", "chg_ready{chg}", "10.0.0.4") // although it is busy
	set("HSET", "CHG{chg}:10.0.0.5", "n", "5", "c", "1")
	set("ZADD", "chg_wait{chg}", decimal(end), "10.0.0.5")
	set("HSET", "CHG{chg}:\xff", "n", "5", "c", "1") // no answer of the service could name it
	set("RPUSH", "chg_ready{chg}", "\xff")
	got, err := s.ReserveNextHost(ctx, lease, 9, "")
	if err != nil || len(got) != 2 || got[0].Host == got[1].Host {
		t.Fatalf("ReserveNextHost = %+v, %v; want 10.0.0.1 and 10.0.0.2", got, err)
	}
	for id, want := range map[string]string{"10.0.0.1": "busy", "10.0.0.2": "busy", "10.0.0.3": "wait",
		"10.0.0.4": "busy", "10.0.0.5": "wait"} {
		in(t, s, id, want)
	}
	for _, id := range []string{"10.0.0.3", "10.0.0.4", "10.0.0.5"} {
		if got, err := s.TryReserve(ctx, id, lease, ""); !errors.Is(err, reservation.ErrNotNow) {
			t.Errorf("TryReserve(%s) = %+v, %v; want ErrNotNow", id, got, err)
		}
	}
	if x, err := s.Explain(ctx, "10.0.0.4"); err != nil || x.State != reservation.Busy || x.Holder != "other" {
		t.Errorf("Explain = %+v, %v; want that other has it", x, err)
	}
	if err := s.ReleaseHost(ctx, got[0].Host, got[0].Token, time.Time{}); err != nil {
		t.Fatal(err)
	}
	in(t, s, got[0].Host, "ready")
	if got, err := s.TryReserve(ctx, got[0].Host, lease, ""); err != nil {
		t.Errorf("TryReserve = %+v, %v", got, err)
	}
}

// TestNoNumber: a group whose next time or count another program has overwritten with a text keeps
// no other group from being reserved or released.
func TestNoNumber(t *testing.T) {
	s, ctx := realStore(t, time.Second, redistest.Start(t).Addr()), t.Context()
	for _, host := range []string{"a.test", "b.test", "c.test"} {
		if _, err := s.AddHost(ctx, host, time.Time{}); err != nil {
			t.Fatal(err)
		}
		do(t, s, []string{"HSET"}, "p:CHG{chg}:b.test", "n", "soon")
	}
	got, err := s.ReserveNextHost(ctx, lease, 9, "")
	if err != nil || len(got) != 3 {
		t.Fatalf("ReserveNextHost = %+v, %v; want all three", got, err)
	}
	do(t, s, []string{"HSET"}, "p:CHG{chg}:b.test", "n", "soon")
	for _, r := range got {
		if err := s.ReleaseHost(ctx, r.Host, r.Token, time.Time{}); err != nil {
			t.Errorf("ReleaseHost(%s) = %v", r.Host, err)
		}
	}
}
