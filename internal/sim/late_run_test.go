package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"urlserver/configs"
	"urlserver/protocol"
	"urlserver/urlserver/engine"
)

// lateRun is an engine under virtual time, and an oracle that watches it as it would watch a daemon
// in real time on a slow machine: every message takes a while, and the engine reads its clock
// before it reads its messages.
type lateRun struct {
	rng     *rand.Rand
	events  eventQueue
	now     time.Duration
	slow    time.Duration // the longest time that a message takes
	engine  *engine.Engine
	inbox   []func()
	busy    bool
	oracle  *oracle
	conns   []*lateConn
	urls    []string // not offered yet
	next    int      // DOC_ID
	cfg     configs.Config
	watched func(configs.Config) configs.Config // the settings that the oracle checks
}

// lateConn is a connection. Lines on it keep their order.
type lateConn struct {
	id       uint32
	writing  bool
	dirty    bool
	down, up time.Duration // when the last line arrives, at the spider and at the daemon
}

const (
	lateHosts = 12
	lateEach  = 25
)

// newLateRun returns a run with several spiders, or with one and more than one open request per
// host. watched changes the daemon's settings into those that the oracle checks.
func newLateRun(seed uint64, watched func(configs.Config) configs.Config) *lateRun {
	r := &lateRun{rng: rand.New(rand.NewPCG(seed, 5)), watched: watched}
	r.slow = []time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond}[r.rng.IntN(3)]
	for i := range lateHosts * lateEach {
		r.urls = append(r.urls, fmt.Sprintf("http://192.0.2.%d/%d", i%lateHosts, i))
	}
	c := configs.Default()
	c.Robots.Enabled, c.TimeoutSpiderStatus, c.QueueCount = false, 24*time.Hour, 2*lateHosts
	spiders := 1 + 2*r.rng.IntN(2)
	r.cfg = r.change(c, spiders == 1)
	r.oracle = newOracle(limitsOf(watched(r.cfg), true), lateHosts*lateEach)
	r.oracle.late = &late{spiders: map[uint32]moment{}}
	cached := func(host []byte) (netip.Addr, error, bool) {
		addr, err := netip.ParseAddr(string(host))
		return addr, err, true
	}
	r.engine = engine.New(r.cfg, engine.Options{Cached: cached, Exact: true})
	for n := range spiders {
		id := r.engine.Connected(fmt.Sprint("spider ", n))
		r.oracle.connected(id)
		r.conns = append(r.conns, &lateConn{id: id})
	}
	r.post(func() {})
	r.after(r.some(), func() { r.reload(spiders == 1) })
	return r
}

// change returns c with other rates and limits, or other rates and rules.
func (r *lateRun) change(c configs.Config, limits bool) configs.Config {
	c.ReqHostPerSec = []float64{0.7, 3, 20, 100}[r.rng.IntN(4)]
	c.QueueLen = 3 + r.rng.IntN(20)
	c.Spider.MaxInFlight = 2 + r.rng.IntN(30)
	if limits {
		c.ReqHostConcurrent = 1 + r.rng.IntN(3)
		return c
	}
	c.Rules = nil
	for range r.rng.IntN(4) {
		rule := configs.HostRule{Networks: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0,
			2, byte(r.rng.IntN(lateHosts))}), 28+r.rng.IntN(5)).Masked()}}
		rule.PerSec = []float64{0, 0.3, 9, 50}[r.rng.IntN(4)]
		rule.Group = []string{"", "few", "many"}[r.rng.IntN(3)]
		rule.Block = r.rng.IntN(6) == 0
		c.Rules = append(c.Rules, rule)
	}
	return c
}

func (r *lateRun) after(wait time.Duration, do func()) { r.events.add(r.now+wait, do) }

// some returns a random duration up to r.slow, mostly a short one.
func (r *lateRun) some() time.Duration {
	if r.rng.IntN(4) > 0 {
		return time.Duration(r.rng.Int64N(int64(r.slow)/20 + 1))
	}
	return time.Duration(r.rng.Int64N(int64(r.slow) + 1))
}

// fetching returns how long a fetch takes: sometimes longer than the time between two changes of
// settings.
func (r *lateRun) fetching() time.Duration {
	if r.rng.IntN(6) > 0 {
		return r.some()
	}
	return time.Duration(r.rng.Int64N(int64(3 * time.Second)))
}

// work runs until all documents have ended or the oracle complains.
func (r *lateRun) work() error {
	for steps := 0; r.oracle.complaint == nil && (r.oracle.report.Taken < lateHosts*lateEach ||
		r.oracle.held > 0); {
		at, ok := r.events.next()
		if steps++; !ok || at > time.Hour || steps > 1_000_000 {
			r.oracle.wrong(RuleProgress, "%d documents held", r.oracle.held)
			break
		}
		r.now = at
		r.oracle.setClocks(at, time.Time{})
		r.events.take()()
	}
	if r.oracle.complaint == nil {
		return nil
	}
	return fmt.Errorf("%d spiders, up to %v late: %w", len(r.conns), r.slow, r.oracle.complaint)
}

// reload changes the settings now, and again after a while.
func (r *lateRun) reload(limits bool) {
	c := r.change(r.cfg, limits)
	if len(r.oracle.late.former) > 30 { // else documents of blocked hosts would never end
		c.Rules = nil
	}
	r.cfg = c
	r.oracle.changing(limitsOf(r.watched(c), true))
	r.after(r.some(), func() {
		r.post(func() {
			r.engine.Reconfigure(c)
			r.after(r.some(), func() {
				r.oracle.changed()
				r.after(r.some()+time.Duration(r.rng.Int64N(int64(2*time.Second))),
					func() { r.reload(limits) })
			})
		})
	})
}

// post queues a function for the goroutine that owns the engine.
func (r *lateRun) post(do func()) {
	r.inbox = append(r.inbox, do)
	r.wake()
}

// wake sets the engine's clock now, and runs the queued functions and a step later.
func (r *lateRun) wake() {
	if r.busy {
		return
	}
	r.busy = true
	clock := r.now
	r.engine.Advance(clock, time.Unix(0, 0).Add(clock))
	r.after(r.some(), func() {
		for _, do := range r.inbox {
			do()
		}
		r.inbox = r.inbox[:0]
		wait := r.engine.Step(nil)
		r.flush()
		r.busy = false
		switch {
		case len(r.inbox) > 0 || wait == 0:
			r.wake()
		case wait > 0:
			r.events.add(max(r.now, clock+wait), r.wake)
		}
	})
}

func (r *lateRun) flush() {
	out := &r.engine.Out
	for i := range out.Outcomes.Len() {
		o := out.Outcomes.At(i)
		o.DocID = bytes.Clone(o.DocID)
		r.after(r.some(), func() {
			r.oracle.wall = o.At
			r.oracle.outcome(o)
		})
	}
	for _, id := range out.Dirty {
		c := r.conns[slices.IndexFunc(r.conns, func(c *lateConn) bool { return c.id == id })]
		c.dirty = true
		r.write(c)
	}
	if ask := out.Ask; ask != nil {
		r.after(r.some(), func() { r.answer(ask.Max) })
	}
	out.Outcomes.Reset()
	out.Dirty, out.Ask = out.Dirty[:0], nil
}

// answer sends candidates to the daemon.
func (r *lateRun) answer(most int) {
	a := &engine.Prepared{}
	for range min(most, len(r.urls), 1+r.rng.IntN(60)) {
		id := fmt.Sprint(r.next)
		r.oracle.took(id, r.urls[0], 0)
		a.Batch.Add([]byte(id), []byte(r.urls[0]), 0)
		r.urls, r.next = r.urls[1:], r.next+1
	}
	r.after(r.some(), func() {
		a.Prepare()
		r.post(func() { r.engine.Answered(a) })
	})
}

// write sends the engine's lines for a spider.
func (r *lateRun) write(c *lateConn) {
	if c.writing || !c.dirty {
		return
	}
	c.dirty, c.writing = false, true
	for line := range strings.Lines(string(r.engine.Output(c.id, nil))) {
		c.down = max(c.down, r.now+r.some())
		r.events.add(c.down, func() { r.read(c, strings.TrimSuffix(line, "\n")) })
	}
	r.after(r.some(), func() {
		r.post(func() {
			r.engine.Written(c.id)
			c.writing = false
			r.write(c)
		})
	})
}

// read delivers a line to a spider, which answers after a while.
func (r *lateRun) read(c *lateConn, line string) {
	r.oracle.line(c.id, line, 0)
	r.oracle.written(c.id)
	r.after(r.fetching(), func() {
		text := line[:strings.IndexByte(line, ' ')] + " DONE 200"
		r.oracle.status(c.id, text)
		c.up = max(c.up, r.now+r.some())
		r.events.add(c.up, func() {
			status, err := protocol.ParseStatus([]byte(text))
			r.post(func() { r.engine.Lines(c.id, []engine.Line{{Status: status, Bad: err != nil}}) })
		})
	})
}
