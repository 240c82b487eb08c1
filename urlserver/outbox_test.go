package urlserver

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

var errIndex = errors.New("index is away")

const second = time.Second

// onHosts is n documents, each on a host of its own.
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
		if wait := []time.Duration{0, second, 3 * second, 7 * second, 11 * second, 15 * second}; len(taken) > 0 || !slices.Equal(tries, wait) {
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

func TestUnwantedOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, func(c *configs.Config) { c.DocIndex.OutcomesMax = 2 })
		b.index.failing(fmt.Errorf("status 404: %w", docindex.ErrUnwanted))
		b.index.offer(onHosts(6)...)
		s := b.spider()
		for range 6 {
			trans, _ := s.line()
			s.say("%s DONE", trans)
			time.Sleep(second)
		}
		synctest.Wait()
		if _, tries := b.index.outcomes(time.Now()); len(tries) != 1 {
			t.Errorf("outcomes were sent %d times to an index that does not want them; want once", len(tries))
		}
		b.stopped()
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
		for range 3 { // the third went out together with the news of the second
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
