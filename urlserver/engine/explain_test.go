package engine

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/hostslots"
	"urlserver/urlserver/explain"
)

// TestWhy has the reasons that hold for the length of a step only, and what
// each begins with in order of weight; testdata/why.txt has them in life.
func TestWhy(t *testing.T) {
	held := hostslots.HostView{
		Addr: netip.MustParseAddr("10.0.0.1"), Slot: 3, Queued: 2, Offers: true,
		Site:    hostslots.LevelView{Level: hostslots.SiteLevel, Name: "a.test"},
		Address: hostslots.LevelView{Level: hostslots.AddressLevel, Name: "10.0.0.1"},
	}
	for _, l := range []*hostslots.LevelView{&held.Site, &held.Address} {
		l.MostOpen, l.Gap, l.Base = 1, time.Second, time.Second
	}
	with := func(change func(v *hostslots.HostView)) Explanation {
		v := held
		change(&v)
		return Explanation{HostView: v}
	}
	crawlWait := with(func(v *hostslots.HostView) {
		v.Offers, v.Site.Next, v.Site.Last = false, 61*time.Second, time.Minute
	})
	crawlWait.CrawlWait = true
	for _, c := range []struct {
		name string
		x    Explanation
		want string
	}{
		{name: "due", x: with(func(*hostslots.HostView) {}), want: "due now; goes out with the next sending"},
		{name: "turns", x: with(func(v *hostslots.HostView) { v.Others = 3 }),
			want: "due now; takes turns with 2 other hosts on 10.0.0.1"},
		{name: "robots.txt", x: crawlWait,
			want: "its robots.txt is fetched first; not before 2026-01-01T00:00:01Z: Req_Host_Per_Sec, " +
				"one request in 1s to the site"},
		{name: "moving", x: with(func(v *hostslots.HostView) {
			v.Addr, v.Queued, v.Site.Next, v.Site.Last = netip.Addr{}, 0, 61*time.Second, time.Minute
		}),
			want: "no document is held for it; the doc index has offered none that is new; not before " +
				"2026-01-01T00:00:01Z: Req_Host_Per_Sec, one request in 1s to the site"},
		{name: "blocked weighs most", x: with(func(v *hostslots.HostView) {
			v.Blocked, v.Site.Open = 90*time.Second, 1
		}), want: "blocked by the operator until 2026-01-01T00:00:30Z"},
		{name: "open requests before waiting for a slot",
			x: with(func(v *hostslots.HostView) { v.Address.Open, v.InSlotQueue = 1, true }),
			want: "1 of 1 requests allowed to the address 10.0.0.1 are open (Req_Host_Concurrent); " +
				"waits for one to end"},
		{name: "open requests of the site first",
			x: with(func(v *hostslots.HostView) { v.Address.Open, v.Site.Open = 1, 1 }),
			want: "1 of 1 requests allowed to the site a.test are open (Req_Host_Concurrent); " +
				"waits for one to end"},
		{name: "sites that failed", x: with(func(v *hostslots.HostView) {
			v.Address.Next, v.Address.Backoff, v.Address.Gap = 61*time.Second, 2*time.Second, 2*time.Second
			v.Address.Failing, v.Next = []string{"b.test", "c.test"}, 61*time.Second
		}), want: "it may not be asked yet; not before 2026-01-01T00:00:01Z: the address 10.0.0.1 " +
			"backs off, gap 2s, since several of its sites answered 429 or 503: b.test, c.test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := configs.Default()
			cfg.ReqHostPerSec = 1
			e := New(cfg, Options{})
			e.Advance(time.Minute, start)
			e.spiders.withRoom = 1
			if got := explain.Text(e.reasons(&c.x)); got != c.want {
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

// TestSlotViewsBitByBit: a page of slots in use is the same however far apart they are, and no call
// looks at more than its share.
func TestSlotViewsBitByBit(t *testing.T) {
	const slots = 10 * slotsStep
	p := newScript(t, fmt.Sprintf("Queue_Count=%d docindex.batch=1000000", slots))
	const used = 3 * viewsStep
	var docs []string
	for n := range used {
		docs = append(docs, fmt.Sprintf("%d=http://10.0.%d.%d/", n, n/200, n%200))
	}
	p.event(append([]string{"index"}, docs...))
	p.step(t)
	w, calls := SlotViews{Offset: 10, Limit: used, Hosts: 1}, 1
	for ; p.e.SlotViews(&w); calls++ {
		if len(w.Found) > calls*viewsStep || w.next > uint32(calls*slotsStep) {
			t.Fatalf("after %d calls %d views of slots up to %d", calls, len(w.Found), w.next)
		}
	}
	if len(w.Found) != used-10 || calls < slots/slotsStep {
		t.Fatalf("%d slots after %d calls; want %d", len(w.Found), calls, used-10)
	}
	for n, v := range w.Found {
		if v.Slot != uint32(n+10) {
			t.Fatalf("slot %d comes at place %d", v.Slot, n)
		}
	}
	w = SlotViews{Limit: 3, Hosts: 1}
	if p.e.SlotViews(&w) || len(w.Found) != 3 {
		t.Errorf("%d slots; want the 3 asked for at once", len(w.Found))
	}
}
