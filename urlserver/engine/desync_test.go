package engine

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
)

// TestHoldUpKeepsHostsApart has ten hosts, due one a millisecond, and the engine held up for as
// long.
func TestHoldUpKeepsHostsApart(t *testing.T) {
	const hosts = 10
	cfg := configs.Default()
	cfg.ReqHostPerSec, cfg.ReqHostConcurrent = 1, 9
	cfg.Robots.Enabled = false
	e := New(cfg, Options{Cached: func(name []byte) (netip.Addr, error, bool) {
		return netip.AddrFrom4([4]byte{192, 0, 2, name[0]}), nil, true
	}})
	e.Connected("spider")
	at := 10 * second
	for host := range hosts {
		e.Advance(at, time.Time{})
		p := &Prepared{}
		for doc := range 3 {
			p.Batch.Add(fmt.Appendf(nil, "%d-%d", host, doc), fmt.Appendf(nil, "http://%c.example/%d",
				'a'+host, doc), 0)
		}
		p.Prepare()
		e.Answered(p)
		stepAt(e, at)
		at += time.Millisecond
	}
	if sent := stepAt(e, 11*second-1); sent != hosts {
		t.Fatalf("sent %d documents before the gap is over; want %d", sent, hosts)
	}
	if sent := stepAt(e, 11*second+hosts*time.Millisecond); sent != 2*hosts {
		t.Fatalf("sent %d documents after the hold-up; want %d", sent, 2*hosts)
	}
	for now := 12 * second; e.stats.Sent < 3*hosts; now += time.Millisecond {
		before := e.stats.Sent
		if sent := stepAt(e, now) - before; sent > 1 {
			t.Errorf("%d hosts are due together at %v", sent, now)
		}
		if now > 13*second {
			t.Fatalf("sent %d documents until %v; want %d", e.stats.Sent, now, 3*hosts)
		}
	}
}
