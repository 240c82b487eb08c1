package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/internal/robots"
)

const (
	site   = "http://a.example"
	second = time.Second
)

// paced is an engine with some documents of one host, whose name leads to 192.0.2.1, at time 10 s.
func paced(docs int, change func(c *configs.Config)) *Engine {
	cfg := configs.Default()
	cfg.ReqHostPerSec = 1
	cfg.Robots.Enabled = false
	change(&cfg)
	e := New(cfg, Options{Cached: func([]byte) (netip.Addr, error, bool) {
		return netip.MustParseAddr("192.0.2.1"), nil, true
	}})
	e.Advance(0, time.Time{})
	e.Step(nil)
	e.Answered(offered(docs))
	e.Out.Ask = nil
	e.Advance(10*second, time.Time{})
	return e
}

// offered is an answer of the doc index with so many documents of one site.
func offered(docs int) *Prepared {
	p := &Prepared{}
	for i := range docs {
		p.Batch.Add(fmt.Append(nil, i), fmt.Appendf(nil, "%s/%d", site, i), 0)
	}
	p.Prepare()
	return p
}

// stepAt steps at a moment and returns how many documents were sent so far.
func stepAt(e *Engine, now time.Duration) (sent uint64) {
	e.Advance(now, time.Time{})
	e.Step(nil)
	return e.stats.Sent
}

func TestStepWaitsForSilenceThatHasJustBegun(t *testing.T) {
	e := paced(1, func(c *configs.Config) { c.TimeoutSpiderStatus = 30 * second })
	e.Connected("spider")
	e.intake.asking = true // so that nothing else is waited for
	if wait := e.Step(nil); e.stats.Sent != 1 || wait != 30*second {
		t.Errorf("step: %d sent, wait = %v; want 1 and 30s", e.stats.Sent, wait)
	}
}

func TestRobotsAreFetchedInTheStepThatNeedsThem(t *testing.T) {
	e := paced(1, func(c *configs.Config) { c.Robots.Enabled = true })
	e.Connected("spider")
	e.Step(nil)
	if got := len(e.Out.Fetches); got != 1 {
		t.Errorf("step: %d requests for robots.txt; want 1", got)
	}
}

func TestGapCountsFromTheEndOfABrokenWrite(t *testing.T) {
	e := paced(1, func(c *configs.Config) { c.TimeoutSpiderStatus = time.Hour })
	id := e.Connected("spider")
	if sent := stepAt(e, 10*second); sent != 1 {
		t.Fatalf("sent %d documents at 10s; want 1", sent)
	}
	e.Output(id, nil)
	e.Advance(20*second, time.Time{}) // the write takes 10 s, and breaks: some of it may have got through just now
	e.Gone(id)
	e.Connected("another")
	if sent := stepAt(e, 20*second); sent != 1 {
		t.Errorf("sent %d documents at 20s, when the first may have arrived; want 1", sent)
	}
	if sent := stepAt(e, 21*second); sent != 2 {
		t.Errorf("sent %d documents a gap later; want 2", sent)
	}
}

// TestAnswerIsUsedOnce has a robots.txt that holds shorter than the group's gap is long.
func TestAnswerIsUsedOnce(t *testing.T) {
	e := paced(2, func(c *configs.Config) {
		c.ReqHostPerSec = 0.001
		c.Robots.Enabled, c.Robots.TTL = true, 10*time.Minute
		c.TimeoutSpiderStatus = 24 * time.Hour
		c.ReqHostConcurrent = 2
	})
	e.Connected("spider")
	requests := []string{}
	for now := 1000 * second; now <= 4000*second; now += 1000 * second {
		before := e.stats.Sent
		stepAt(e, now)
		for _, f := range e.Out.Fetches {
			requests = append(requests, "robots.txt")
			e.Fetched(f.ID, robots.Response{Status: 404})
		}
		e.Out.Fetches = nil
		if e.stats.Sent > before {
			requests = append(requests, "document")
		}
	}
	want := "[robots.txt document robots.txt document]"
	if got := fmt.Sprint(requests); got != want {
		t.Errorf("requests, one each 1000 s: %v; want %v", got, want)
	}
}

func TestDocumentsOfHostsKnownToFailEndAtOnce(t *testing.T) {
	e := New(configs.Default(), Options{Cached: func([]byte) (netip.Addr, error, bool) {
		return netip.Addr{}, errors.New("no such host"), true
	}})
	e.Step(nil)
	p := &Prepared{}
	p.Batch.Add([]byte("1"), []byte(site+"/"), 0)
	p.Prepare()
	e.Answered(p)
	e.Step(nil)
	if got := e.Out.Outcomes.Len(); got != 1 {
		t.Errorf("outcomes after the step that takes the document: %d; want 1", got)
	}
}
