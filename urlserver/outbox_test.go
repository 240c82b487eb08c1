package urlserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex"
)

var errIndex = errors.New("index is away")

const second = time.Second

// onHosts returns n documents, each on a host of its own.
func onHosts(n int) (docs []string) {
	for i := range n {
		docs = append(docs, fmt.Sprintf("%d http://10.0.0.%d/", i, i))
	}
	return docs
}

func TestOutcomesAreKeptUntilTheIndexTakesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, func(c *configs.Config) { c.DocIndex.Retry, c.DocIndex.MaxRetry = second, 4*second })
		b.index.offer(onHosts(5)...)
		b.index.failing(errIndex)
		s := b.spider()
		var want []string
		start := time.Now()
		for i := range 5 {
			trans, id := s.line()
			if i == 0 {
				start = time.Now()
			}
			s.say("%s DONE 200", trans)
			want = append(want, id+" done")
			time.Sleep(2 * second)
		}
		time.Sleep(time.Until(start.Add(15 * second)))
		synctest.Wait()
		taken, tries := b.index.outcomes(start)
		if wait := []time.Duration{0, second, 3 * second, 7 * second, 11 * second,
			15 * second}; len(taken) > 0 || !slices.Equal(tries, wait) {
			t.Errorf("tries at %v, took %v; want at %v and nothing", tries, taken, wait)
		}
		status, err := b.d.Status(t.Context())
		if status.OutcomesWaiting != 5 || err != nil {
			t.Errorf("%d outcomes wait, %v; want 5", status.OutcomesWaiting, err)
		}
		b.index.failing(nil)
		time.Sleep(4 * second)
		synctest.Wait()
		if taken, _ := b.index.outcomes(start); !slices.Equal(taken, want) {
			t.Errorf("took %v; want %v, in order and once", taken, want)
		}
		b.stopped()
	})
}

var errUnwanted = fmt.Errorf("status 404: %w", docindex.ErrUnwanted)

// TestUnwantedOutcomesAreOfferedAgain: an index that answers 404 gets no more outcomes for an hour. A
// proxy that does so during a deploy does not lose them.
func TestUnwantedOutcomesAreOfferedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, func(c *configs.Config) { c.DocIndex.Retry, c.DocIndex.OutcomesMax = second, 4 })
		b.index.failing(errUnwanted)
		b.index.offer(onHosts(6)...)
		s := b.spider()
		var want []string
		start := time.Now()
		for i := range 6 {
			trans, id := s.line() // all are sent, however many outcomes wait
			if i == 0 {
				start = time.Now()
			}
			s.say("%s DONE", trans)
			if want = append(want, id+" done"); i > 3 {
				want = want[:4] // outcomes_max
			}
			time.Sleep(second)
		}
		time.Sleep(time.Until(start.Add(20 * second)))
		synctest.Wait()
		taken, tries := b.index.outcomes(start)
		if len(taken) > 0 || !slices.Equal(tries, []time.Duration{0}) {
			t.Errorf("tries at %v, took %v; want the first and nothing", tries, taken)
		}
		if b.log.count("wants no outcomes") != len(tries) || b.log.count(`"level":"warn"`) < len(tries) {
			t.Errorf("not warned of each of %d tries", len(tries))
		}
		b.index.failing(nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if taken, _ := b.index.outcomes(start); !slices.Equal(taken, want) {
			t.Errorf("took %v; want %v, in order and once", taken, want)
		}
		b.stopped()
	})
}

// TestUnwantedForHours: an index that has answered so for an hour is asked hourly, and only the
// oldest call's outcomes are kept.
func TestUnwantedForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const batches = 3
		index := &fakeIndex{fail: errUnwanted}
		o := newOutbox("outcomes", index.Outcomes, zerolog.Nop())
		o.configure(configs.Default().DocIndex)
		put := func() {
			var out docindex.Outcomes
			for i := range outcomeBatch {
				out.Add(docindex.Outcome{DocID: fmt.Append(nil, i)})
			}
			o.put(&out, nil)
		}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go o.run(ctx)
		start := time.Now()
		for range batches {
			put()
		}
		time.Sleep(time.Hour - second)
		if n := o.pending(); n != batches*outcomeBatch {
			t.Errorf("after an hour %d outcomes are kept; want all %d", n, batches*outcomeBatch)
		}
		time.Sleep(4 * time.Hour)
		put()
		_, tries := index.outcomes(start)
		if gap := tries[len(tries)-1] - tries[len(tries)-2]; gap != time.Hour || len(tries) > 20 {
			t.Errorf("asked %d times, and at last after %v; want an hour", len(tries), gap)
		}
		if n := o.pending(); n != outcomeBatch {
			t.Errorf("after hours %d outcomes are kept; want %d", n, outcomeBatch)
		}
		if err := o.drain(stopWait); err != nil || o.pending() != 0 {
			t.Errorf("drain: %v, and %d wait; want not to wait for an index that wants none", err, o.pending())
		}
	})
}

func TestTooManyOutcomesStopSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, func(c *configs.Config) {
			c.DocIndex.OutcomesMax, c.DocIndex.Retry, c.DocIndex.MaxRetry = 2, second, second
			c.Spider.MaxInFlight = 1
		})
		b.index.offer(onHosts(5)...)
		b.index.failing(errIndex)
		s := b.spider()
		for range 3 { // the third arrived while the second was refused
			trans, _ := s.line()
			s.say("%s DONE", trans)
		}
		s.conn.SetReadDeadline(time.Now().Add(time.Hour))
		if line, err := s.in.ReadString('\n'); err == nil {
			t.Fatalf("%q was sent although outcomes cannot be delivered", line)
		}
		s.conn.SetReadDeadline(time.Time{})
		b.index.failing(nil)
		for range 2 {
			trans, _ := s.line()
			s.say("%s DONE", trans)
		}
		synctest.Wait()
		if taken, _ := b.index.outcomes(time.Now()); len(taken) != 5 {
			t.Errorf("took %v; want all five", taken)
		}
		b.stopped()
	})
}

func TestStopTriesOutcomesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, func(c *configs.Config) { c.DocIndex.Retry, c.DocIndex.MaxRetry = time.Hour, time.Hour })
		b.index.offer(onHosts(1)...)
		b.index.failing(errIndex)
		s := b.spider()
		trans, _ := s.line()
		s.say("%s DONE", trans)
		time.Sleep(time.Minute)
		b.index.failing(nil)
		took, err := b.stop()
		if taken, _ := b.index.outcomes(time.Now()); took != 0 || err != nil || len(taken) != 1 {
			t.Errorf("stop took %v, %v, and the index %v; want the outcome delivered at once", took, err, taken)
		}
	})
}

func TestStopGivesUpOnAnIndexThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, nil)
		b.index.offer(onHosts(1)...)
		b.index.failing(errIndex)
		s := b.spider()
		trans, _ := s.line()
		s.say("%s DONE", trans)
		time.Sleep(time.Minute)
		if took, err := b.stop(); took != stopWait || !errors.Is(err, errUndelivered) {
			t.Errorf("stop took %v: %v; want %v and to be told", took, err, stopWait)
		}
	})
}
