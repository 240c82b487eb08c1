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

// lateRun is an engine under virtual time, and an oracle that hears of it as it would of a daemon
// that runs in real time on a slow machine: everything is under way for a while, and the engine's
// clock is read before what is heard.
type lateRun struct {
	rng    *rand.Rand
	events eventQueue
	now    time.Duration
	slow   time.Duration // the longest that anything takes
	engine *engine.Engine
	inbox  []func()
	busy   bool
	oracle *oracle
	conns  []*lateConn
	urls   []string // not offered yet
	next   int      // DOC_ID
	cfg    configs.Config
	told   func(configs.Config) configs.Config // what the oracle is told of settings
}

// lateConn is a connection; what is under way on it keeps its order.
type lateConn struct {
	id       uint32
	writing  bool
	dirty    bool
	down, up time.Duration // when the last thing under way to the spider, and to the daemon, gets there
}

const (
	lateHosts = 12
	lateEach  = 25
)

// newLateRun has several spiders where hosts are asked one by one.
func newLateRun(seed uint64, told func(configs.Config) configs.Config) *lateRun {
	r := &lateRun{rng: rand.New(rand.NewPCG(seed, 5)), told: told}
	r.slow = []time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond}[r.rng.IntN(3)]
	for i := range lateHosts * lateEach {
		r.urls = append(r.urls, fmt.Sprintf("http://192.0.2.%d/%d", i%lateHosts, i))
	}
	c := configs.Default()
	c.Robots.Enabled, c.TimeoutSpiderStatus, c.QueueCount = false, 24*time.Hour, 2*lateHosts
	spiders := 1 + 2*r.rng.IntN(2)
	r.cfg = r.change(c, spiders == 1)
	r.oracle = newOracle(limitsOf(told(r.cfg), true), lateHosts*lateEach)
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

// change makes other settings: rates and limits, or rates and rules.
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

// some is how long something takes: mostly little.
func (r *lateRun) some() time.Duration {
	if r.rng.IntN(4) > 0 {
		return time.Duration(r.rng.Int64N(int64(r.slow)/20 + 1))
	}
	return time.Duration(r.rng.Int64N(int64(r.slow) + 1))
}

// fetching is how long a fetch takes: now and then longer than it is until settings change.
func (r *lateRun) fetching() time.Duration {
	if r.rng.IntN(6) > 0 {
		return r.some()
	}
	return time.Duration(r.rng.Int64N(int64(3 * time.Second)))
}

// work goes on until all documents have ended or something is wrong.
func (r *lateRun) work() error {
	for steps := 0; r.oracle.complaint == nil && (r.oracle.figures.Taken < lateHosts*lateEach || r.oracle.held > 0); {
		at, ok := r.events.next()
		if steps++; !ok || at > time.Hour || steps > 1_000_000 {
			r.oracle.wrong(RuleProgress, "%d documents held", r.oracle.held)
			break
		}
		r.now = at
		r.oracle.tell(at, time.Time{})
		r.events.take()()
	}
	if r.oracle.complaint == nil {
		return nil
	}
	return fmt.Errorf("%d spiders, up to %v late: %w", len(r.conns), r.slow, r.oracle.complaint)
}

// reload changes the settings, and again in a while.
func (r *lateRun) reload(limits bool) {
	c := r.change(r.cfg, limits)
	if len(r.oracle.late.former) > 30 { // or what rules block would never end
		c.Rules = nil
	}
	r.cfg = c
	r.oracle.changing(limitsOf(r.told(c), true))
	r.after(r.some(), func() {
		r.post(func() {
			r.engine.Reconfigure(c)
			r.after(r.some(), func() {
				r.oracle.changed()
				r.after(r.some()+time.Duration(r.rng.Int64N(int64(2*time.Second))), func() { r.reload(limits) })
			})
		})
	})
}

// post gives the daemon's owner something to do.
func (r *lateRun) post(do func()) {
	r.inbox = append(r.inbox, do)
	r.wake()
}

// wake has the owner read its clock and then, later, work by it.
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

// answer gives candidates to the daemon.
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

// write brings what the engine has for a spider under way.
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

// read has a spider receive a line, and answer in a while.
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
