package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/hostslots"
	"urlserver/reservation"
	"urlserver/reservation/kv"
)

const (
	netName    = "content.example"
	netLease   = time.Minute
	netPenalty = 10 * time.Second
	netTick    = 20 * time.Millisecond
	netMargin  = netLease / 10
)

// netWorld is daemons that share the cap of one network, in virtual time, over the rules of a
// reservation store. It counts the requests of all.
type netWorld struct {
	t       *testing.T
	rnd     *rand.Rand
	now     time.Duration
	store   *kv.Store
	away    bool // the store does not answer
	pace    configs.Pace
	takes   time.Duration // a fetch, at most
	daemons []*netDaemon
	open    int
	sent    int
	ahead   float64       // requests beyond the pace, at the last request
	last    time.Duration // request

	mostOpen  int
	mostAhead float64
}

// netDaemon is a daemon's part of the cap, and sites that wait for it.
type netDaemon struct {
	w       *netWorld
	s       netSlices
	sites   int     // that wait for the cap
	rate    float64 // sites that come, a second; 0: sites wait for ever
	gap     time.Duration
	room    int
	last    time.Duration
	open    int
	sent    int
	batch   *LeaseBatch
	answer  time.Duration
	ends    []time.Duration
	stopped bool
	frozen  time.Duration // until
}

func (d *netDaemon) SetCap(_ time.Duration, _ string, gap time.Duration, room int) {
	d.gap, d.room = gap, room
}
func (d *netDaemon) Cap(string) hostslots.CapView {
	return hostslots.CapView{Open: d.open, Waiting: d.sites, Requests: uint64(d.sent)}
}

// rows is a table for a kv.Store.
type rows map[string][]byte

func (r rows) Get(_ context.Context, key string) ([]byte, error) { return r[key], nil }
func (r rows) CompareAndSwap(_ context.Context, key string, was, to []byte) (bool, error) {
	now, has := r[key]
	switch {
	case to == nil:
		delete(r, key)
	case has != (was != nil) || string(now) != string(was):
		return false, nil
	default:
		r[key] = to
	}
	return true, nil
}
func (r rows) Scan(_ context.Context, from, before string, limit int) (list []kv.Pair, err error) {
	for key, value := range r {
		if key >= from && key < before {
			list = append(list, kv.Pair{Key: key, Value: value})
		}
	}
	slices.SortFunc(list, func(a, b kv.Pair) int { return strings.Compare(a.Key, b.Key) })
	return list[:min(limit, len(list))], nil
}

func newNetWorld(t *testing.T, seed uint64, pace configs.Pace, takes time.Duration, daemons int) *netWorld {
	w := &netWorld{t: t, rnd: rand.New(rand.NewPCG(seed, 2)), pace: pace, takes: takes}
	w.store = kv.New(kv.Config{KV: rows{}, ID: "x", Penalty: netPenalty,
		Now: func(context.Context) (int64, error) { return 1_700_000_000_000 + w.now.Milliseconds(), nil }})
	for range daemons {
		w.add()
	}
	return w
}

// add starts a daemon with many sites.
func (w *netWorld) add() *netDaemon {
	d := &netDaemon{w: w, sites: 1000, s: newNetSlices(netLease, w.rnd.Uint64())}
	d.s.set(w.now, d, map[string]*configs.SharedNetwork{netName: {Name: netName, Pace: w.pace}})
	w.daemons = append(w.daemons, d)
	return d
}

// do does a batch at the store, as the daemon's reserver does.
func (d *netDaemon) do(c *LeaseBatch) {
	ctx, s := context.Background(), d.w.store
	if d.w.away {
		return
	}
	for _, r := range c.Releases {
		_ = s.ReleaseHost(ctx, r.Host, r.Token, time.Time{}) // stale: the lease had ended
	}
	answer := func(r *LeaseRequest, err error) {
		if r.Answer = Granted; err != nil {
			r.Answer = Denied
		}
	}
	for i := range c.Extends {
		r := &c.Extends[i]
		_, err := s.ExtendHost(ctx, r.Host, r.Token, netLease)
		answer(r, err)
	}
	for i := range c.Acquires {
		r := &c.Acquires[i]
		got, err := s.TryReserve(ctx, r.Host, netLease, "")
		if errors.Is(err, reservation.ErrUnknown) {
			_, _ = s.AddHost(ctx, r.Host, time.Time{})
			got, err = s.TryReserve(ctx, r.Host, netLease, "")
		}
		r.Token = got.Token
		answer(r, err)
	}
}

// tick lets a daemon do what it has to.
func (d *netDaemon) tick() {
	w := d.w
	d.ends = slices.DeleteFunc(d.ends, func(end time.Duration) bool {
		if end <= w.now {
			w.open--
		}
		return end <= w.now
	})
	if d.stopped || w.now < d.frozen {
		return
	}
	d.open = len(d.ends)
	if d.rate > 0 && w.rnd.Float64() < d.rate*netTick.Seconds() {
		d.sites++
	}
	if d.batch != nil && w.now >= d.answer {
		for _, list := range [][]LeaseRequest{d.batch.Extends, d.batch.Acquires} {
			for i := range list {
				d.s.answered(w.now, d.batch.began, netMargin, &list[i])
			}
		}
		d.batch = nil
	}
	d.s.step(w.now, d, false, &waiter{})
	d.send()
	if d.batch == nil {
		c := &LeaseBatch{began: w.now}
		if d.s.gather(w.now, c, false); len(c.Releases)+len(c.Extends)+len(c.Acquires) > 0 {
			d.do(c)
			d.batch, d.answer = c, w.now+time.Duration(w.rnd.Int64N(int64(200*time.Millisecond)))
		}
	}
}

func (d *netDaemon) send() {
	w := d.w
	for d.sites > 0 && d.open < d.room && w.now >= d.last+d.gap {
		// The slots send on time, between two ticks.
		d.last = max(d.last+d.gap, w.now-netTick+1)
		if d.rate > 0 {
			d.sites--
		}
		d.open++
		d.sent++
		d.ends = append(d.ends, w.now+w.takes/2+time.Duration(w.rnd.Int64N(int64(w.takes/2))))
		w.request()
	}
}

// request counts a request of any daemon. In any span of time there may be the requests that the
// pace allows, and one more of each daemon, since all daemons keep their gaps by themselves.
func (w *netWorld) request() {
	w.open++
	w.sent++
	w.ahead = max(0, w.ahead-(w.now-w.last).Seconds()*w.pace.PerSec) + 1
	w.last = w.now
	w.mostOpen, w.mostAhead = max(w.mostOpen, w.open), max(w.mostAhead, w.ahead)
	if w.open > w.pace.Concurrent {
		w.t.Fatalf("%v: %d requests are open; want at most %d", w.now, w.open, w.pace.Concurrent)
	}
	if most := float64(len(w.daemons)) + netTick.Seconds()*w.pace.PerSec + 1e-6; w.ahead > most {
		w.t.Fatalf("%v: %.1f requests beyond the pace; want at most %.1f", w.now, w.ahead, most)
	}
}

// run lets time pass, and returns the requests a second.
func (w *netWorld) run(span time.Duration) float64 {
	before, began := w.sent, w.now
	for ; w.now < began+span; w.now += netTick {
		for _, n := range w.rnd.Perm(len(w.daemons)) {
			w.daemons[n].tick()
		}
		if w.now%(30*time.Second) == 0 {
			_ = w.store.Sweep(context.Background())
		}
	}
	return float64(w.sent-before) / span.Seconds()
}

// full is how many requests a second the cap allows.
func (w *netWorld) full() float64 {
	return min(w.pace.PerSec, float64(w.pace.Concurrent)/(w.takes*3/4+netTick).Seconds())
}

// sentBy returns how many requests each daemon sends in a span.
func (w *netWorld) sentBy(span time.Duration) (each []int) {
	for _, d := range w.daemons {
		each = append(each, -d.sent)
	}
	w.run(span)
	for i, d := range w.daemons {
		each[i] += d.sent
	}
	return each
}

func TestDaemonsShareACap(t *testing.T) {
	for _, c := range []struct {
		pace  configs.Pace
		takes time.Duration
	}{
		{configs.Pace{PerSec: 50, Concurrent: 20}, 300 * time.Millisecond},
		{configs.Pace{PerSec: 50, Concurrent: 20}, 2 * time.Second},
		{configs.Pace{PerSec: 5, Concurrent: 10}, time.Second},
		{configs.Pace{PerSec: 5, Concurrent: 10}, 10 * time.Second},
		{configs.Pace{PerSec: 1, Concurrent: 100}, time.Second},
		{configs.Pace{PerSec: 0.5, Concurrent: 1}, time.Second},
		{configs.Pace{PerSec: 500, Concurrent: 300}, 500 * time.Millisecond},
	} {
		for _, daemons := range []int{1, 2, 4, 8} {
			t.Run(fmt.Sprint(c.pace, c.takes, daemons), func(t *testing.T) {
				w := newNetWorld(t, 1, c.pace, c.takes, daemons)
				w.run(10 * netLease)
				before := w.sent
				each := w.sentBy(20 * netLease)
				got := float64(w.sent-before) / (20 * netLease).Seconds() / w.full()
				t.Logf("%.3f of the cap; each daemon %v; %v open, %.1f beyond the pace",
					got, each, w.mostOpen, w.mostAhead)
				if got < 0.9 {
					t.Errorf("together %.3f of the cap; want above 0.9", got)
				}
			})
		}
	}
}

// TestDaemonsShareACapInTrouble: daemons end, stand still and come back, and the store fails, at
// random. A fetch takes less than what lies between the end of a slice's use and its next lease.
func TestDaemonsShareACapInTrouble(t *testing.T) {
	for seed := range uint64(20) {
		w := newNetWorld(t, seed, configs.Pace{PerSec: 20, Concurrent: 12}, 4*time.Second, 4)
		for range 60 {
			d := w.daemons[w.rnd.IntN(len(w.daemons))]
			switch w.rnd.IntN(6) {
			case 0:
				d.stopped = true // and its requests go on
				fresh := w.add()
				fresh.ends, fresh.open = d.ends, 0
				w.daemons = slices.DeleteFunc(w.daemons, func(o *netDaemon) bool { return o == d })
			case 1, 2:
				d.frozen = w.now + time.Duration(w.rnd.Int64N(int64(2*netLease)))
			case 3:
				w.away = !w.away
			case 4: // it has little to do, or much
				d.rate, d.sites = float64(w.rnd.IntN(3))*0.5, 1
			}
			w.run(time.Duration(w.rnd.Int64N(int64(netLease))))
		}
		w.away = false
		for _, d := range w.daemons {
			d.frozen, d.rate, d.sites = 0, 0, 1000
		}
		w.run(5 * netLease)
		if got := w.run(10*netLease) / w.full(); got < 0.9 {
			t.Errorf("seed %d: %.3f of the cap after the trouble; want above 0.9", seed, got)
		}
	}
}

// TestANewcomerGetsItsShare: a daemon comes when another one has had the cap for itself.
func TestANewcomerGetsItsShare(t *testing.T) {
	w := newNetWorld(t, 1, configs.Pace{PerSec: 50, Concurrent: 20}, time.Second, 1)
	w.run(10 * netLease)
	fresh := w.add()
	if w.run(netLease / 2); fresh.sent == 0 {
		t.Error("it sent nothing for half a lease")
	}
	w.run(3 * netLease)
	each := w.sentBy(10 * netLease)
	if share := float64(each[1]) / float64(each[0]+each[1]); share < 0.4 || share > 0.6 {
		t.Errorf("from three leases on it has %.2f of the requests; want half", share)
	}
}

// TestWhoNeedsLessLeavesTheRest: one daemon has much to send, and three have little. Then all have
// nothing.
func TestWhoNeedsLessLeavesTheRest(t *testing.T) {
	w := newNetWorld(t, 1, configs.Pace{PerSec: 50, Concurrent: 20}, 300*time.Millisecond, 4)
	for _, d := range w.daemons[1:] {
		d.rate, d.sites = 1, 0
	}
	w.run(10 * netLease)
	each := w.sentBy(10 * netLease)
	t.Log("requests in ten minutes:", each)
	if sum := each[1] + each[2] + each[3]; each[0]+sum < 26000 {
		t.Errorf("%d requests of the busy daemon, %d of the others; want 26000 together", each[0], sum)
	}
	for n, sent := range each[1:] {
		if sent < 550 {
			t.Errorf("daemon %d sent %d of its 600 requests", n+1, sent)
		}
	}
	for _, d := range w.daemons {
		d.rate, d.sites = 1e-9, 0
	}
	w.run(2 * netLease)
	for n, d := range w.daemons {
		if held, _ := d.s.share(netName); held > 0 {
			t.Errorf("daemon %d keeps %d slices with nothing to send", n, held)
		}
	}
}

// TestUnusedSlicesAreForgotten: all slices at the start, and later those that are not held.
func TestUnusedSlicesAreForgotten(t *testing.T) {
	w := newNetWorld(t, 1, configs.Pace{PerSec: 10, Concurrent: 4}, second, 1)
	d := w.daemons[0]
	c := &LeaseBatch{}
	d.s.gather(0, c, false)
	if len(c.Forgets) != 4 {
		t.Errorf("at the start: %v; want all 4 slices", c.Forgets)
	}
	c.reset(0)
	d.s.caps[0].slices[0].state = sliceHeld
	if d.s.gather(forgetLeases*netLease-1, c, false); len(c.Forgets) != 0 {
		t.Errorf("soon after that: %v; want none", c.Forgets)
	}
	if d.s.gather(forgetLeases*netLease, c, false); len(c.Forgets) != 3 {
		t.Errorf("later: %v; want the 3 that are free", c.Forgets)
	}
}
