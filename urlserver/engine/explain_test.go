package engine

import (
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/hostslots"
)

// TestWhy has the reasons that hold for the length of a step only, and what
// each begins with in order of weight; testdata/why.txt has them in life.
func TestWhy(t *testing.T) {
	held := hostslots.HostView{
		Addr: netip.MustParseAddr("10.0.0.1"), Slot: 3, Queued: 2, Concurrent: 1, Offers: true, Gap: time.Second, Base: time.Second,
	}
	with := func(change func(v *hostslots.HostView)) Explanation {
		v := held
		change(&v)
		return Explanation{HostView: v}
	}
	crawlWait := with(func(v *hostslots.HostView) { v.Offers = false; v.Next = 61 * time.Second; v.Last = time.Minute })
	crawlWait.CrawlWait = true
	for _, c := range []struct {
		name string
		x    Explanation
		want string
	}{
		{name: "due", x: with(func(*hostslots.HostView) {}), want: "due now; goes out with the next sending"},
		{name: "turns", x: with(func(v *hostslots.HostView) { v.Others = 3 }), want: "due now; takes turns with 2 other hosts on 10.0.0.1"},
		{name: "robots.txt", x: crawlWait, want: "its robots.txt is fetched first; not before 2026-01-01T00:00:01Z: Req_Host_Per_Sec, one request in 1s"},
		{name: "moving", x: with(func(v *hostslots.HostView) { v.Addr, v.Queued, v.Next = netip.Addr{}, 0, 61*time.Second }),
			want: "no document is held for it; the doc index has offered none that is new; not before 2026-01-01T00:00:01Z: the address it had before was asked a moment ago"},
		{name: "blocked weighs most", x: with(func(v *hostslots.HostView) { v.Blocked, v.Active = 90*time.Second, 1 }), want: "blocked by the operator until 2026-01-01T00:00:30Z"},
		{name: "open requests before waiting for a slot", x: with(func(v *hostslots.HostView) { v.Active, v.Waits = 1, true }),
			want: "1 of 1 requests allowed to 10.0.0.1 are open (Req_Host_Concurrent); waits for one to end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := configs.Default()
			cfg.ReqHostPerSec = 1
			e := New(cfg, Options{})
			e.Advance(time.Minute, start)
			e.roomy = 1
			if got := e.why(&c.x); got != c.want {
				t.Errorf("got:  %s\nwant: %s", got, c.want)
			}
		})
	}
}

func TestExplainGivesTheFirstOriginsRobots(t *testing.T) {
	p := newScript(t, "robots.enabled=true Queue_Count=1")
	p.event([]string{"index", "1=http://10.0.0.1/1", "2=http://10.0.0.1:81/2"})
	p.event([]string{"spider", "A"})
	p.step(t)
	p.pass(t, time.Second)
	p.event([]string{"robots", "http://10.0.0.1/robots.txt", "404"})
	x, ok := p.e.Explain([]byte("10.0.0.1"))
	if !ok || x.Queued != 2 || x.Slot != 0 || x.Robots.State() != "unavailable" {
		t.Errorf("Explain = %+v, %v; want two documents in slot 0, and no robots.txt", x, ok)
	}
}
