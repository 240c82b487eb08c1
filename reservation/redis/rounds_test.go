package redis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/redis/redistest"
)

// TestRoundsGather: what comes while a round is under way is asked in one go, but for callers that went away.
func TestRoundsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked [][]int
		var r rounds[int, int]
		r.ask = func(list []int) []int {
			asked = append(asked, slices.Sorted(slices.Values(list)))
			time.Sleep(time.Second)
			answers := make([]int, len(list))
			for i := range list {
				answers[i] = -list[i]
			}
			return answers
		}
		gone, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		call := func(ctx context.Context, n int, want error) {
			callers.Go(func() {
				if got, err := r.do(ctx, n); !errors.Is(err, want) || err == nil && got != -n {
					t.Errorf("do(%d) = %d, %v; want %d, %v", n, got, err, -n, want)
				}
			})
		}
		call(t.Context(), 1, nil)
		synctest.Wait()
		for n := 2; n <= 9; n++ {
			call(t.Context(), n, nil)
		}
		call(gone, 10, context.Canceled)
		synctest.Wait()
		leave()
		callers.Wait()
		if want := [][]int{{1}, {2, 3, 4, 5, 6, 7, 8, 9}}; !slices.EqualFunc(asked, want, slices.Equal) {
			t.Errorf("asked in %v; want %v", asked, want)
		}
		if _, err := r.do(gone, 11); !errors.Is(err, context.Canceled) || len(asked) != 2 {
			t.Errorf("do of a caller that is gone = %v, asked in %v; want nothing asked", err, asked)
		}
	})
}

// TestNextIsShared: each caller of a round gets what it asked for, as far as there is some, groups of several hosts or not.
func TestNextIsShared(t *testing.T) {
	s, ctx := realStore(t, time.Second, redistest.Start(t).Addr()), t.Context()
	if err := s.SetAlias(ctx, "twins", []string{"a.test", "b.test"}); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"1.test", "2.test", "a.test", "b.test", "3.test"} {
		if _, err := s.AddHost(ctx, host, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	answers := s.reserveNext([]next{
		{lease: 20_000, holder: "one", most: 1}, {lease: 40_000, holder: "three", most: 100}, {lease: 60_000, holder: "none", most: 3},
	})
	if len(answers) != 3 || len(answers[0].list) != 1 || len(answers[1].list) != 3 || len(answers[2].list) != 0 {
		t.Fatalf("shares are %+v; want 1, 3 and none", answers)
	}
	if !errors.Is(answers[2].err, reservation.ErrNotNow) || answers[0].err != nil || answers[1].err != nil {
		t.Errorf("errors are %v, %v and %v; want ErrNotNow for the last", answers[0].err, answers[1].err, answers[2].err)
	}
	for i, want := range []next{{lease: 20_000, holder: "one"}, {lease: 40_000, holder: "three"}} {
		for _, r := range answers[i].list {
			text(t, s, want.holder, "CHG{chg}:"+r.Group, "HGET", "h")
			if left := time.Until(r.LeaseEnd); left > time.Duration(want.lease)*time.Millisecond+time.Second || left < time.Duration(want.lease-15_000)*time.Millisecond {
				t.Errorf("%s is leased for %v more; want %d ms", r.Host, left, want.lease)
			}
		}
	}
}
