package engine

import (
	"fmt"
	"testing"
	"time"

	"urlserver/configs"
)

// TestCrowdSpreads has many hosts begin at once, as fast as the engine can send. From then on they
// are due over a longer time, and no gap is longer than it may be.
func TestCrowdSpreads(t *testing.T) {
	const (
		hosts, rounds = 5000, 4
		cost          = 10 * time.Microsecond // of a document
		gap           = time.Second
	)
	cfg := configs.Default()
	cfg.QueueCount, cfg.ReqHostPerSec, cfg.Spider.MaxInFlight, cfg.Robots.Enabled = hosts, 1, hosts, false
	c := newCrowd(cfg, Options{Exact: true})
	p := &Prepared{}
	for n := range rounds * hosts {
		p.Batch.Add(fmt.Append(nil, n), fmt.Appendf(nil, "http://h%d.test/%d", n%hosts, n), 0)
	}
	p.Prepare()
	c.now += gap
	c.e.Advance(c.now, start)
	c.e.Answered(p)
	first, last := [rounds]time.Duration{}, [rounds]time.Duration{}
	sent, at := map[string]int{}, map[string]time.Duration{}
	for lines := 0; lines < rounds*hosts; {
		c.e.Advance(c.now, start)
		wait := c.e.Step(func() time.Duration { c.now += clockEvery * cost; return c.now })
		for _, host := range c.take() {
			round := sent[host]
			if longest := gap + gap/desyncShare; round > 1 && c.now-at[host] > longest+gap/100 {
				t.Fatalf("%s is asked after %v in round %d; want at most %v", host, c.now-at[host], round, longest)
			}
			if first[round] == 0 {
				first[round] = c.now
			}
			sent[host], at[host], last[round] = round+1, c.now, c.now
			lines++
		}
		c.now += max(wait, 0)
	}
	begun, ended := last[0]-first[0], last[rounds-1]-first[rounds-1]
	if ended < begun*3/2 {
		t.Errorf("the hosts are asked within %v in round %d, %v in the first; want half as long again at least",
			ended, rounds, begun)
	}
}
