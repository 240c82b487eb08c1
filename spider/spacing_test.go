package spider

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"
)

func TestSpacing(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	// in ms: when the line arrived, when the connection was ready, when the request must be sent
	type step struct{ line, ready, want int }
	cases := []struct {
		name  string
		steps []step
	}{
		{name: "slow connection, then a kept one", steps: []step{
			{line: 0, ready: 200, want: 200}, {line: 1000, ready: 1001, want: 1200},
			{line: 2000, ready: 2000, want: 2200},
		}},
		{name: "a delay is not made up for, nor added to", steps: []step{
			{line: 0, ready: 0, want: 0}, {line: 1000, ready: 1300, want: 1300},
			{line: 2000, ready: 2300, want: 2300},
		}},
		{name: "several open at once, out of order", steps: []step{
			{line: 1000, ready: 1001, want: 1001}, {line: 0, ready: 1500, want: 1500},
			{line: 2000, ready: 2000, want: 2001},
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var s spacing
			addr := netip.MustParseAddr("192.0.2.1")
			for i, step := range c.steps {
				got := at(step.ready).Add(s.next(addr, at(step.line), at(step.ready)))
				if got != at(step.want) {
					t.Errorf("request %d left at %v, want %v", i, got.Sub(at(0)), at(step.want).Sub(at(0)))
				}
			}
		})
	}
}

func TestSpacingForgets(t *testing.T) {
	var s spacing
	now := time.Unix(0, 0)
	for i := range uint32(100_000) {
		var ip [4]byte
		binary.BigEndian.PutUint32(ip[:], i)
		now = now.Add(time.Second)
		s.next(netip.AddrFrom4(ip), now, now)
	}
	if most := 3 * markSweep; len(s.marks) > most {
		t.Errorf("%d addresses are remembered of those asked in the last ten minutes; want at most %d",
			len(s.marks), most)
	}
}
