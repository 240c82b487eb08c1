package redis

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
)

// TestNextIsShared: each caller of a batch gets the groups that it asked for, as far as there are
// enough: groups of one and of several hosts, in one script and in several.
func TestNextIsShared(t *testing.T) {
	addr := redistest.Start(t).Addr()
	for scripts, most := range map[int]int{1: turnBatch - 4, 3: turnBatch} {
		s := patient(New(Config{Addrs: []string{addr}, Prefix: fmt.Sprintf("%d:", scripts)}))
		t.Cleanup(s.Close)
		testNextIsShared(t, s, []request{
			{lease: 20_000, holder: "one", most: 1}, {lease: 40_000, holder: "three", most: most},
			{lease: 60_000, holder: "none", most: 3},
		})
	}
}

func testNextIsShared(t *testing.T, s *Store, requests []request) {
	t.Helper()
	if err := s.SetAlias(t.Context(), "twins", []string{"a.test", "b.test"}); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"1.test", "2.test", "a.test", "b.test", "3.test"} {
		if _, err := s.AddHost(t.Context(), host, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	answers := s.runRequests(t.Context(), requests)
	if len(answers) != 3 || len(answers[0].list) != 1 || len(answers[1].list) != 3 ||
		len(answers[2].list) != 0 {
		t.Fatalf("shares are %+v; want 1, 3 and none", answers)
	}
	if !errors.Is(answers[2].err, reservation.ErrNotNow) || answers[0].err != nil || answers[1].err != nil {
		t.Errorf("errors are %v, %v and %v; want ErrNotNow for the last", answers[0].err, answers[1].err,
			answers[2].err)
	}
	for i, want := range requests[:2] {
		for _, r := range answers[i].list {
			if h, _ := do(t, s, []string{"HGET"}, s.cfg.Prefix+"CHG{chg}:"+r.Group, "h").
				ToString(); h != want.holder {
				t.Errorf("%s is with %q; want %q", r.Group, h, want.holder)
			}
			if left := time.Until(r.LeaseEnd); left > time.Duration(want.lease)*time.Millisecond+
				time.Second || left < time.Duration(want.lease-15_000)*time.Millisecond {
				t.Errorf("%s is leased for %v more; want %d ms", r.Host, left, want.lease)
			}
		}
	}
}

func releaseOf(r reservation.Reservation) request {
	return request{release: reservation.Call{Verb: reservation.ReleaseHost, Host: r.Host, Token: r.Token}}
}

// TestTurn releases and reserves in one script. A stale or late release does not affect the others,
// and a group released twice is in one queue.
func TestTurn(t *testing.T) {
	s, ctx := realStore(t, time.Second, redistest.Start(t).Addr()), t.Context()
	got := map[string]reservation.Reservation{}
	for _, host := range []string{"now.test", "later.test", "shared.test", "stale.test"} {
		if _, err := s.AddHost(ctx, host, time.Time{}); err != nil {
			t.Fatal(err)
		}
		r, err := s.TryReserve(ctx, host, lease, "me")
		if err != nil {
			t.Fatal(err)
		}
		got[host] = r
	}
	if err := s.SetAlias(ctx, "both", []string{"shared.test", "other.test"}); err != nil {
		t.Fatal(err)
	}
	later, stale := releaseOf(got["later.test"]), releaseOf(got["stale.test"])
	next := time.Now().Add(time.Hour)
	later.release.Time, stale.release.Token = next, got["stale.test"].Token+1
	answers := s.runRequests(t.Context(), []request{
		{lease: 60_000, holder: "you", most: 2}, stale, releaseOf(got["now.test"]), later,
		releaseOf(got["now.test"]), releaseOf(got["shared.test"]),
		releaseOf(reservation.Reservation{Host: "none.test", Token: 1}),
	})
	for i, want := range []error{nil, reservation.ErrStale, nil, nil, reservation.ErrStale, nil,
		reservation.ErrUnknown} {
		if !errors.Is(answers[i].err, want) {
			t.Errorf("answer %d is %v; want %v", i, answers[i].err, want)
		}
	}
	if list := answers[0].list; len(list) != 1 || list[0].Host != "now.test" ||
		list[0].Token <= got["now.test"].Token {
		t.Errorf("reserved %+v; want now.test, which was released just before", list)
	}
	in(t, s, "now.test", "busy")
	in(t, s, "stale.test", "busy")
	in(t, s, "later.test", "wait")
	in(t, s, "shared.test", "")
	in(t, s, "both", "wait")
	text(t, s, decimal(reservation.Millis(next)), "chg_wait{chg}", "ZSCORE", "later.test")
	text(t, s, decimal(reservation.Millis(next)), "CHG{chg}:later.test", "HGET", "n")
	text(t, s, "", "CHG{chg}:later.test", "HGET", "t")
}

// TestTurnGivesOnce: a group that another program has queued twice, or that is reserved, is given
// once.
func TestTurnGivesOnce(t *testing.T) {
	s, ctx := realStore(t, time.Second, redistest.Start(t).Addr()), t.Context()
	for _, host := range []string{"a.test", "b.test"} {
		if _, err := s.AddHost(ctx, host, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.TryReserve(ctx, "b.test", lease, "me"); err != nil {
		t.Fatal(err)
	}
	do(t, s, []string{"RPUSH"}, "p:chg_ready{chg}", "a.test", "b.test", "a.test")
	list, err := s.ReserveNextHost(ctx, lease, 50, "you")
	if err != nil || len(list) != 1 || list[0].Host != "a.test" {
		t.Errorf("ReserveNextHost = %+v, %v; want a.test", list, err)
	}
	in(t, s, "a.test", "busy")
	in(t, s, "b.test", "busy")
}

// TestTurnLeavesTheRest: no caller gets more due groups than it asked for. The others stay in the
// queue.
func TestTurnLeavesTheRest(t *testing.T) {
	s, ctx := realStore(t, time.Second, redistest.Start(t).Addr()), t.Context()
	if err := s.SetAlias(ctx, "twins", []string{"2.test"}); err != nil {
		t.Fatal(err)
	}
	hosts := []string{"1.test", "2.test", "3.test", "4.test", "5.test"}
	for _, host := range hosts {
		if _, err := s.AddHost(ctx, host, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Work(ctx); err != nil { // in this order
			t.Fatal(err)
		}
	}
	var got []string
	for _, most := range []int{3, 1, 9} {
		list, err := s.ReserveNextHost(ctx, lease, most, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			got = append(got, r.Host)
		}
		got = append(got, "|")
	}
	if all := strings.Join(got, " "); all != "1.test 2.test 3.test | 4.test | 5.test |" {
		t.Errorf("reserved %s", all)
	}
	for _, group := range []string{"1.test", "twins", "3.test", "4.test", "5.test"} {
		in(t, s, group, "busy")
	}
}

// TestTurnWhilePaused: while no new reservations are made, leases can be released.
func TestTurnWhilePaused(t *testing.T) {
	s, ctx := realStore(t, time.Second, redistest.Start(t).Addr()), t.Context()
	if _, err := s.AddHost(ctx, "a.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	r, err := s.TryReserve(ctx, "a.test", lease, "")
	if err != nil {
		t.Fatal(err)
	}
	do(t, s, []string{"SET"}, "p:chg_pause{chg}", decimal(time.Now().Add(time.Hour).UnixMilli()))
	answers := s.runRequests(t.Context(), []request{{lease: 60_000, most: 5}, releaseOf(r)})
	if !errors.Is(answers[0].err, reservation.ErrNotNow) || !strings.Contains(answers[0].err.Error(),
		"another than before") || answers[1].err != nil {
		t.Errorf("answers are %v, %v; want a refusal that says why, and none", answers[0].err, answers[1].err)
	}
	in(t, s, "a.test", "ready")
}
