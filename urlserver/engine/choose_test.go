package engine

import (
	"bytes"
	"container/heap"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/hostslots"
	"urlserver/protocol"
)

// crawl is an engine with an endless index of poolHosts hosts, which are due one after the other,
// and spiders that take a fixed time for each document. Time is virtual.
type crawl struct {
	t       *testing.T
	e       *Engine
	now     time.Duration
	answers answers
	spiders map[uint32]*pooled
	docs    int
	pool    string // spiderid of all spiders and documents; "": none
	asked   *Ask   // not answered yet
	due     time.Duration
	last    map[netip.Addr]uint32 // by host: its last document's spider
	moved   int                   // how often that was another one than before
}

const (
	poolHosts  = 500
	poolPerSec = 1
	poolGap    = time.Second / poolPerSec
	alone      = poolHosts * poolPerSec // lines a second that all hosts together allow
)

// pooled is a spider. takes may be changed at any time; 0: it never answers.
type pooled struct {
	id    uint32
	takes time.Duration
	lines int
	open  int
}

// answers is the statuses to come, by time.
type answers []answerAt

type answerAt struct {
	at     time.Duration
	spider *pooled
	trans  protocol.Trans
}

func (a answers) Len() int           { return len(a) }
func (a answers) Less(i, j int) bool { return a[i].at < a[j].at }
func (a answers) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *answers) Push(x any)        { *a = append(*a, x.(answerAt)) }
func (a *answers) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func newCrawl(t *testing.T) *crawl {
	cfg := configs.Default()
	cfg.ReqHostPerSec = poolPerSec
	cfg.Robots.Enabled = false
	c := &crawl{t: t, spiders: map[uint32]*pooled{}, last: map[netip.Addr]uint32{}}
	c.e = New(cfg, Options{Cached: func(name []byte) (netip.Addr, error, bool) {
		addr, err := netip.ParseAddr(string(name))
		return addr, err, true
	}, Exact: true})
	return c
}

func (c *crawl) spider(takes time.Duration) *pooled {
	sp := &pooled{id: c.e.Connected("spider"), takes: takes}
	if c.pool != "" {
		c.e.JoinPool(sp.id, c.pool)
	}
	c.spiders[sp.id] = sp
	return sp
}

func (c *crawl) gone(sp *pooled) {
	c.e.Advance(c.now, time.Time{})
	c.e.Gone(sp.id)
	delete(c.spiders, sp.id)
}

// run lets time pass and returns how many lines a second the spiders were sent, all together.
func (c *crawl) run(d time.Duration) (perSec float64) {
	before := c.e.stats.Sent
	for until := c.now + d; c.now < until; {
		c.e.Advance(c.now, time.Time{})
		for len(c.answers) > 0 && c.answers[0].at <= c.now {
			a := heap.Pop(&c.answers).(answerAt)
			if c.spiders[a.spider.id] == a.spider {
				a.spider.open--
				c.e.Lines(a.spider.id, []Line{{Status: protocol.Status{Trans: a.trans, Verb: protocol.Done,
					HasStatus: true, Code: 200}}})
			}
		}
		if c.asked != nil && c.due <= c.now {
			c.answer(c.asked)
		}
		wait := c.e.Step(func() time.Duration { return c.now })
		c.collect()
		next := until
		if wait >= 0 {
			next = min(next, c.now+wait)
		}
		if len(c.answers) > 0 {
			next = min(next, c.answers[0].at)
		}
		if c.asked != nil {
			next = min(next, c.due)
		}
		c.now = max(c.now, next)
	}
	return float64(c.e.stats.Sent-before) / d.Seconds()
}

func (c *crawl) collect() {
	out := c.e.Out
	c.e.Out = Out{}
	for _, id := range out.Dirty {
		sp := c.spiders[id]
		if sp == nil {
			continue
		}
		for line := range bytes.Lines(c.e.Output(id, nil)) {
			f, err := protocol.ParseFetch(bytes.TrimSuffix(line, []byte("\n")))
			if err != nil {
				c.t.Fatalf("%q: %v", line, err)
			}
			trans, _ := protocol.ParseTrans(f.Trans)
			if c.last[f.Addr] != id {
				c.moved++
			}
			c.last[f.Addr] = id
			sp.lines++
			sp.open++
			if sp.takes > 0 {
				heap.Push(&c.answers, answerAt{at: c.now + sp.takes, spider: sp, trans: trans})
			}
		}
		c.e.Written(id)
	}
	if out.Ask != nil {
		c.asked, c.due = out.Ask, c.now
		if c.docs < poolHosts { // at first one host after the other
			c.asked.Max = 1
			c.due = max(c.due, poolGap) + poolGap/poolHosts
		}
	}
}

// answer offers documents of the hosts that are not to be left out, in turn.
func (c *crawl) answer(ask *Ask) {
	rejected := map[string]bool{}
	for _, name := range ask.Reject {
		rejected[name] = true
	}
	c.asked = nil
	p := &Prepared{}
	for tries := 0; p.Batch.Len() < ask.Max && tries < poolHosts; tries++ {
		c.docs++
		host := fmt.Sprintf("10.0.%d.%d", c.docs%poolHosts/250, c.docs%poolHosts%250+1)
		if !rejected[host] {
			p.Batch.AddFor(fmt.Append(nil, c.docs), fmt.Appendf(nil, "http://%s/%d", host, c.docs), 0, c.pool, "")
		}
	}
	p.Prepare()
	c.e.Answered(p)
}

const fastTakes = 20 * time.Millisecond

// TestSlowSpiderDragsNobodyDown: a spider beside slow and mute ones is sent nearly as many lines as
// alone, in whichever order they came.
func TestSlowSpiderDragsNobodyDown(t *testing.T) {
	const near = 0.95 * alone
	slow, mute := 10*time.Second, time.Duration(0)
	for _, c := range []struct {
		name   string
		takes  []time.Duration // of the spiders, as they connect
		settle time.Duration   // before anything is measured
		pool   string
		want   float64
	}{
		{name: "alone", takes: []time.Duration{fastTakes}, want: near},
		{name: "slow", takes: []time.Duration{fastTakes, slow}, want: near},
		{name: "slow first", takes: []time.Duration{slow, fastTakes}, want: near},
		{name: "mute", takes: []time.Duration{fastTakes, mute}, want: near},
		{name: "mute first", takes: []time.Duration{mute, fastTakes}, want: near},
		{name: "both", takes: []time.Duration{mute, slow, fastTakes}, want: near},
		{name: "in a pool", takes: []time.Duration{mute, slow, fastTakes}, pool: "link", want: near},
		{name: "slow for long", takes: []time.Duration{slow, fastTakes}, settle: time.Minute, want: near},
		{name: "twenty slow ones", takes: append([]time.Duration{fastTakes}, repeated(slow, 20)...),
			settle: 20 * time.Second, want: near},
		{name: "two fast ones", takes: []time.Duration{fastTakes, fastTakes}, want: near},
		{name: "one that needs five times as long", takes: []time.Duration{fastTakes, 5 * fastTakes}, want: near},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newCrawl(t)
			r.pool = c.pool
			for _, takes := range c.takes {
				r.spider(takes)
			}
			r.run(3*poolGap + c.settle)
			got := r.run(10 * time.Second)
			t.Logf("%.0f lines/s of %d", got, alone)
			if got < c.want {
				t.Errorf("%.0f lines/s; want %.0f at least", got, c.want)
			}
		})
	}
}

func repeated(d time.Duration, n int) (all []time.Duration) {
	for range n {
		all = append(all, d)
	}
	return all
}

// TestSpiderThatHangsLosesItsSlots has one of two good spiders stop answering: what it has waits
// for the timeout, and the other one gets everything else.
func TestSpiderThatHangsLosesItsSlots(t *testing.T) {
	c := newCrawl(t)
	hangs, goes := c.spider(fastTakes), c.spider(fastTakes)
	c.run(10 * time.Second)
	if hangs.lines < goes.lines/2 || goes.lines < hangs.lines/2 {
		t.Errorf("two equal spiders were sent %d and %d lines; want about as many", hangs.lines, goes.lines)
	}
	hangs.takes = 0
	c.run(2 * poolGap)
	if stuck := hangs.open; stuck > poolHosts/5 {
		t.Errorf("%d of %d hosts' documents went to a spider that hangs; want %d at most", stuck, poolHosts,
			poolHosts/5)
	}
	had := hangs.lines
	c.run(10 * time.Second)
	if hangs.lines != had {
		t.Errorf("%d more lines after it had been silent for two seconds", hangs.lines-had)
	}
}

// TestLongFetchIsNoSilence has each of two quick spiders meet a document that it needs very long
// for, beside a slow spider, before nothing is sent for a while: they count as quick after that,
// and get all but a few.
func TestLongFetchIsNoSilence(t *testing.T) {
	c := newCrawl(t)
	slow := c.spider(10 * time.Second)
	quick := []*pooled{c.spider(fastTakes), c.spider(fastTakes)}
	c.run(time.Minute)
	for _, sp := range quick {
		for had := sp.lines; sp.lines == had; {
			sp.takes = time.Hour
			c.run(time.Millisecond)
		}
		sp.takes = fastTakes
	}
	c.run(poolGap)
	c.e.Pause(true)
	c.run(100 * time.Second)
	c.e.Pause(false)
	had := slow.lines
	c.run(5 * poolGap)
	if got := slow.lines - had; got > 2 {
		t.Errorf("the slow spider got %d lines; want one or two, to try it again", got)
	}
}

// TestSlowSpiderIsTriedAgain has a slow spider recover: it is noticed though the other one could do
// everything.
func TestSlowSpiderIsTriedAgain(t *testing.T) {
	c := newCrawl(t)
	c.spider(fastTakes)
	s := c.spider(10 * time.Second)
	c.run(time.Minute)
	s.takes = fastTakes
	c.run(3 * time.Minute)
	if got := c.e.spiders.byID[s.id].wait(c.e.now); got > 2*fastTakes {
		t.Errorf("three minutes after it has become quick its wait is %v; want %v", got, fastTakes)
	}
}

// TestNewSpiderGetsItsShare has a third, equal spider join two that are full: it starts with few
// documents.
func TestNewSpiderGetsItsShare(t *testing.T) {
	c := newCrawl(t)
	c.e.cfg.Spider.MaxInFlight = 4
	c.spider(fastTakes)
	c.spider(fastTakes)
	c.run(10 * time.Second)
	s := c.spider(fastTakes)
	c.e.Advance(c.now, time.Time{})
	c.run(fastTakes - 1)
	if s.open > firstFew {
		t.Errorf("%d documents before its first answer; want %d at most", s.open, firstFew)
	}
	before := s.lines
	c.run(10 * time.Second)
	if got := float64(s.lines-before) / 10; got < alone/6 {
		t.Errorf("it is sent %.0f lines/s of %d; want a good part of its third", got, alone)
	}
}

// TestMuteSpiderGetsFew: one that has not answered for long gets no more, though it is alone when
// the others have gone.
func TestMuteSpiderGetsFew(t *testing.T) {
	c := newCrawl(t)
	good, mute := c.spider(fastTakes), c.spider(0)
	c.run(15 * time.Second)
	if mute.open == 0 || mute.open > firstFew {
		t.Errorf("a mute spider has %d documents; want some, and %d at most", mute.open, firstFew)
	}
	c.gone(good)
	c.run(2 * poolGap)
	if mute.open > firstFew {
		t.Errorf("alone it has %d documents; want %d at most", mute.open, firstFew)
	}
	x, _ := c.e.Explain([]byte("10.0.0.1"))
	if want := "answered"; !strings.Contains(x.Why, want) {
		t.Errorf("why a host waits: %q; want a word about %q", x.Why, want)
	}
	c.spider(fastTakes)
	c.run(2 * poolGap)
	if got := c.run(10 * time.Second); got < 0.95*alone {
		t.Errorf("%.0f lines/s after the good one is back; want %d", got, alone)
	}
}

// TestLoneSpiderGetsAllItMayHave: there is no better use for documents, so a spider need not answer
// first.
func TestLoneSpiderGetsAllItMayHave(t *testing.T) {
	c := newCrawl(t)
	s := c.spider(time.Hour)
	c.run(3 * poolGap)
	if s.open != poolHosts {
		t.Errorf("a lone spider has %d documents; want one of each of %d hosts", s.open, poolHosts)
	}
}

// TestSlotStaysWithItsSpider: as long as no spider is much slower than the best, a host's documents
// all go to one.
func TestSlotStaysWithItsSpider(t *testing.T) {
	c := newCrawl(t)
	for i := range 4 {
		c.spider(fastTakes + time.Duration(i)*fastTakes/2)
	}
	c.run(10 * time.Second)
	c.moved = 0
	c.run(10 * time.Second)
	if c.moved > alone/100 {
		t.Errorf("hosts changed their spider %d times in %d lines", c.moved, 10*alone)
	}
}

// TestChoosingAllocatesNothing has as many spiders as there may be.
func TestChoosingAllocatesNothing(t *testing.T) {
	e := New(configs.Default(), Options{})
	for range 4096 {
		e.Connected("spider")
	}
	now := time.Duration(0)
	one := func() {
		now += time.Millisecond
		e.now = now
		id := e.spiderFor(hostslots.Selection{})
		sp := e.spiders.byID[id]
		sp.inFlight++
		sp.recent.sent(e.now, sp.inFlight == 1)
		e.updateSpider(id, sp)
		if now%(2*time.Millisecond) == 0 {
			sp.recent.answered(e.now, time.Duration(id)*time.Millisecond)
			sp.done++
			sp.inFlight--
			e.updateSpider(id, sp)
		}
	}
	for range 10_000 {
		one()
	}
	if n := testing.AllocsPerRun(10_000, one); n != 0 {
		t.Errorf("%v allocations a document; want none", n)
	}
}
