package redis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestBatcherGathers: what comes while a batch runs is asked in one script, when it has ended or
// enough have come to be asked beside it, but for callers that went away.
func TestBatcherGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked [][]int
		var r batcher[int, int]
		r.ask = func(_ context.Context, list []int) []int {
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
		for n := 2; n <= minBeside; n++ {
			call(t.Context(), n, nil)
		}
		synctest.Wait()
		if len(asked) != 1 {
			t.Errorf("asked in %v; want some to wait for the first", asked)
		}
		call(t.Context(), minBeside+1, nil) // enough to be asked beside it
		synctest.Wait()
		for n := 10; n <= 20; n++ { // more than were asked, but two batches are running
			call(t.Context(), n, nil)
		}
		call(gone, 21, context.Canceled)
		synctest.Wait()
		leave()
		callers.Wait()
		want := [][]int{{1}, {2, 3, 4, 5, 6, 7, 8, 9}, {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}}
		if !slices.EqualFunc(asked, want, slices.Equal) {
			t.Errorf("asked in %v; want %v", asked, want)
		}
		if _, err := r.do(gone, 22); !errors.Is(err, context.Canceled) || len(asked) != 3 {
			t.Errorf("do of a caller that is gone = %v, asked in %v; want nothing asked", err, asked)
		}
	})
}

// TestBatcherAnswersALoneCaller: a lone caller whose context is cancelled while its batch runs gets the
// answer, so that it knows what it has reserved.
func TestBatcherAnswersALoneCaller(t *testing.T) {
	for range 20 { // a select would choose by chance
		synctest.Test(t, func(t *testing.T) {
			var r batcher[int, int]
			r.ask = func(_ context.Context, list []int) []int { time.Sleep(time.Second); return list }
			ctx, cancel := context.WithCancel(t.Context())
			defer time.AfterFunc(time.Millisecond, cancel).Stop()
			if got, err := r.do(ctx, 7); got != 7 || err != nil {
				t.Errorf("do = %d, %v; want 7", got, err)
			}
		})
	}
}

// TestBatcherKeepsADeadline: a lone caller waits no longer than its deadline, though connecting takes longer
// and nothing can end it. The script is not sent after it, and has no deadline: that would end the
// connection of others, too.
func TestBatcherKeepsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r batcher[int, int]
		var ended []error
		r.ask = func(ctx context.Context, list []int) []int {
			if _, ok := ctx.Deadline(); ok {
				t.Error("the script has its caller's deadline")
			}
			time.Sleep(dialTimeout)
			ended = append(ended, ctx.Err())
			return list
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := r.do(ctx, 7)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 100*time.Millisecond {
			t.Errorf("do = %v after %v; want an error at the deadline", err, took)
		}
		if got, err := r.do(t.Context(), 8); got != 8 || err != nil {
			t.Errorf("do of the next caller = %d, %v; want 8", got, err)
		}
		if len(ended) != 2 || ended[0] == nil || ended[1] != nil {
			t.Errorf("contexts of the scripts after connecting: %v; want the first one ended", ended)
		}
	})
}
