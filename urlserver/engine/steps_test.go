package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urlserver/configs"
	"urlserver/hostslots"
	"urlserver/internal/robots"
	"urlserver/protocol"
)

// cpuTime is the processor time of this thread, which other processes on the machine do not change.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// stopwatch times calls.
type stopwatch struct {
	*testing.B
	took []time.Duration
}

func (w *stopwatch) timed(do func()) {
	began := cpuTime()
	do()
	w.took = append(w.took, cpuTime()-began)
}

// report reports the longest call since the last report, and what 99 of 100 took at most.
func (w *stopwatch) report(what string) {
	slices.Sort(w.took)
	w.ReportMetric(float64(w.took[len(w.took)-1])/1e6, what+"-longest-ms")
	w.ReportMetric(float64(w.took[len(w.took)*99/100])/1e6, what+"-p99-ms")
	w.took = nil
}

// crowd is an engine with many hosts, each with an address and a document of its own.
type crowd struct {
	e      *Engine
	cfg    configs.Config
	spider uint32
	now    time.Duration
}

func newCrowd(cfg configs.Config, opt Options) *crowd {
	c := &crowd{cfg: cfg, now: time.Second}
	opt.Cached = func(host []byte) (netip.Addr, error, bool) {
		var n uint32
		var addr [4]byte
		_, err := fmt.Sscanf(string(host), "h%d.test", &n)
		binary.BigEndian.PutUint32(addr[:], n+10<<24)
		return netip.AddrFrom4(addr), err, true
	}
	opt.CachedFor = func([]byte) time.Duration { return 24 * time.Hour }
	c.e = New(cfg, opt)
	c.e.Advance(c.now, start)
	c.spider = c.e.Connected("spider")
	return c
}

// step lets the engine do what is due.
func (c *crowd) step() {
	c.e.Advance(c.now, start)
	c.e.Step(nil)
}

// take takes the lines that were sent, and returns their hosts. The spider ends each document at
// once.
func (c *crowd) take() (hosts []string) {
	out := bytes.Clone(c.e.Output(c.spider, nil))
	c.e.Out = Out{}
	if out == nil {
		return nil
	}
	c.e.Written(c.spider)
	var lines []Line
	for line := range bytes.Lines(out) {
		f, err := protocol.ParseFetch(bytes.TrimSpace(line))
		if err != nil {
			panic(err)
		}
		trans, _ := protocol.ParseTrans(f.Trans)
		lines = append(lines, Line{Status: protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200,
			HasStatus: true}})
		hosts = append(hosts, string(bytes.Split(f.URL, []byte("/"))[2]))
	}
	c.e.Lines(c.spider, lines)
	return hosts
}

// fill has the index give a document of each of so many hosts, from a number on.
func (c *crowd) fill(w *stopwatch, from, hosts int) {
	p := &Prepared{}
	for n := from; n < from+hosts; {
		p.Batch.Reset()
		for end := min(n+1000, from+hosts); n < end; n++ {
			p.Batch.Add(fmt.Append(nil, n), fmt.Appendf(nil, "http://h%d.test/", n), 0)
		}
		p.Prepare()
		for c.e.Answered(p); c.e.intake.batch != nil; c.take() {
			w.timed(c.step)
		}
	}
}

// BenchmarkStepsAtAMillionGroups reports the longest time that the engine's owner spends in one
// event or step while something that concerns all groups is under way. Sending waits for as long.
func BenchmarkStepsAtAMillionGroups(b *testing.B) {
	const groups = 1 << 20
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w := &stopwatch{B: b}
	cfg := configs.Default()
	cfg.QueueCount, cfg.Spider.MaxInFlight, cfg.Robots.Memory = groups, groups, 1<<30
	c := newCrowd(cfg, Options{Exact: true, Shared: true})
	c.e.Pause(true)
	c.fill(w, 0, groups)
	w.report("intake")
	body := robots.Response{Status: 200, Body: []byte("User-agent: *\nDisallow: /private/\n")}
	for id := range uint32(groups) {
		w.timed(func() { c.e.applyRobots(id+1, body, nil, c.e.now) })
	}
	w.report("robots")
	for range b.N {
		c.reload(w)
		c.look(w)
	}
	c.cfg.Robots.Enabled = false
	c.e.Reconfigure(c.cfg)
	c.e.Pause(false)
	for c.now += time.Minute; c.e.slots.Counts().Held > 0; c.take() {
		w.timed(c.step)
	}
	w.report("send")
	c.e.Pause(true)
	c.fill(w, groups, 1000) // far behind a million origins without documents
	w.took = nil
	c.e.Gone(c.spider)
	for c.e.slots.Counts().Held > 0 {
		w.timed(c.step)
		c.e.Out = Out{}
	}
	w.report("give-back")
}

// reload reports what changes of settings cost.
func (c *crowd) reload(w *stopwatch) {
	c.now += time.Minute
	c.e.Pause(false)
	c.cfg.Rules = append(slices.Clone(c.cfg.Rules),
		configs.HostRule{Hosts: []string{fmt.Sprintf("h%d.test", len(c.cfg.Rules)), "*.example"}, PerSec: 0.1})
	w.timed(func() { c.e.Reconfigure(c.cfg) })
	for c.e.rules.next != 0 {
		w.timed(c.step)
		c.take()
	}
	w.report("rules")
	c.e.Pause(true)
	c.cfg.Robots.UserAgent += "x"
	w.timed(func() { c.e.Reconfigure(c.cfg) })
	w.timed(c.step)
	w.report("agent")
}

// look reports what looks at all slots cost.
func (c *crowd) look(w *stopwatch) {
	for views, more := (SlotViews{Limit: 1 << 16, Hosts: 100}), true; more; {
		w.timed(func() { more = c.e.SlotViews(&views) })
	}
	w.report("SlotViews")
	for views, more := (SlotViews{Offset: 1 << 20, Limit: 1, Hosts: 100}), true; more; {
		w.timed(func() { more = c.e.SlotViews(&views) })
	}
	w.report("SlotViews-far")
	summaries := make([]hostslots.SlotSummary, 1024)
	for from := 0; from < c.cfg.QueueCount; from += len(summaries) {
		w.timed(func() { c.e.SlotSummaries(from, summaries) })
	}
	w.report("SlotSummaries")
}

// TestRulesComeIntoForceBeforeTheNextLine changes the rules for more hosts than a step goes through.
// Nothing is asked until a step has gone through the last one: the new rules put two hosts at two
// addresses into one group.
func TestRulesComeIntoForceBeforeTheNextLine(t *testing.T) {
	const hosts, blocked, slow = 100, "h0.test", "h1.test"
	group := []string{"h2.test", fmt.Sprintf("h%d.test", hosts-1)}
	for _, robots := range []bool{false, true} {
		t.Run(fmt.Sprintf("robots=%v", robots), func(t *testing.T) {
			cfg := configs.Default()
			cfg.Robots.Enabled = robots
			c := newCrowd(cfg, Options{})
			for n := range 2 * ruleStep { // hosts before those that have documents
				c.e.Block(fmt.Append(nil, "idle", n), 0)
			}
			c.fill(&stopwatch{}, 0, hosts)
			c.now = 10 * time.Second
			if robots { // their requests for robots.txt are queued, and none is sent yet
				c.e.robots.limits = [len(c.e.robots.limits)]fetchLimit{}
				c.step()
				c.e.robots.limits = newFetchLimits()
			}
			c.e.Reconfigure(changed(cfg, func(cfg *configs.Config) {
				cfg.Rules = []configs.HostRule{{Hosts: []string{blocked}, Block: true},
					{Hosts: []string{slow}, PerSec: 0.01}, {Hosts: group, Group: "one"}}
			}))
			if c.step(); c.e.rules.next == 0 {
				t.Fatal("one step has gone through all hosts")
			}
			for ; c.e.rules.next != 0; c.step() {
				if lines := c.take(); len(c.e.Out.Fetches)+len(lines) > 0 {
					t.Fatalf("asked before the rules are in force: %q, and %d robots.txt", lines, len(c.e.Out.Fetches))
				}
			}
			var asked []string
			for _, f := range c.e.Out.Fetches {
				asked = append(asked, strings.Split(f.URL, "/")[2])
			}
			asked = append(asked, c.take()...)
			if len(asked) != hosts-3 || slices.Contains(asked, blocked) || slices.Contains(asked, slow) {
				t.Errorf("the step asked %d hosts: %q; want all %d but %s, %s and one of %q", len(asked), asked, hosts,
					blocked, slow, group)
			}
		})
	}
}

func changed(cfg configs.Config, change func(*configs.Config)) configs.Config {
	change(&cfg)
	return cfg
}
