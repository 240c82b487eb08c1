package engine

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/protocol"
)

// crashes is an engine with spiders of which documents may kill the process, in virtual time. A
// spider connects again a second after its connection has ended.
type crashes struct {
	t       *testing.T
	e       *Engine
	now     time.Duration
	todo    []todo
	fetch   time.Duration // a fetch takes so long
	slow    string        // a spider of this address takes 20 s
	deadly  func(url string) bool
	hangs   func(url string) bool
	endless func(url string) bool // the spider says WORKING on it each 30 s, for ever
	mayfly  time.Duration         // connections end so long after they began, without a word; 0: they do not
	silent  bool                  // spiders never say anything
	conns   map[uint32]bool
	ends    [docindex.Kinds]int
	timed   []string // URLs that ended as timeout
	docs    int
	done    map[string]bool // DOC_IDs of what has ended
	retries int             // documents done after more than one attempt
	lines   int
	most    int // documents in flight at a time, at all spiders
}

func newCrashes(t *testing.T, spiders int, change func(*configs.Config)) *crashes {
	cfg := configs.Default()
	cfg.Robots.Enabled, cfg.ReqHostPerSec, cfg.QueueCount = false, 1, 20_000
	cfg.DocIndex.Quarantine, cfg.DocIndex.MaxRetry = second, second
	if change != nil {
		change(&cfg)
	}
	c := &crashes{t: t, fetch: second, conns: map[uint32]bool{}, done: map[string]bool{},
		deadly: func(url string) bool { return strings.Contains(url, "deadly") }}
	c.e = New(cfg, Options{Cached: func(host []byte) (netip.Addr, error, bool) {
		addr, err := netip.ParseAddr(string(host))
		return addr, err, err == nil
	}})
	for n := range spiders {
		c.connect(fmt.Sprint("spider ", n))
	}
	return c
}

func (c *crashes) after(d time.Duration, do func()) { c.todo = append(c.todo, todo{c.now + d, do}) }

// put gives documents, each of a host of its own.
func (c *crashes) put(good, deadly int) {
	p, each := &Prepared{}, (good+deadly)/max(1, deadly)
	for n := range good + deadly {
		path := "good"
		if n%each == each/2 && n/each < deadly {
			path = "deadly"
		}
		p.Batch.Add(fmt.Append(nil, c.docs), fmt.Appendf(nil, "http://10.%d.%d.1/%s", c.docs/250, c.docs%250, path), 0)
		c.docs++
	}
	p.Prepare()
	c.e.intake.asking = true
	c.e.Answered(p)
}

func (c *crashes) connect(peer string) {
	id := c.e.Connected(peer)
	c.conns[id] = true
	if c.mayfly > 0 {
		c.after(c.mayfly, func() { c.hangUp(id, peer) })
	}
}

func (c *crashes) hangUp(id uint32, peer string) {
	if !c.conns[id] || c.e.spiders.byID[id] == nil || c.e.spiders.byID[id].closed {
		return
	}
	delete(c.conns, id)
	c.e.Gone(id)
	c.after(second, func() { c.connect(peer) })
}

func (c *crashes) read(id uint32) {
	sp := c.e.spiders.byID[id]
	lines := bytes.Clone(c.e.Output(id, nil))
	if lines == nil {
		return
	}
	c.e.Written(id)
	for line := range bytes.Lines(lines) {
		f, err := protocol.ParseFetch(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			c.t.Fatal(err)
		}
		c.lines++
		trans, _ := protocol.ParseTrans(f.Trans)
		done := Line{Status: protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200, HasStatus: true}}
		switch {
		case c.silent || c.hangs != nil && c.hangs(string(f.URL)):
		case c.endless != nil && c.endless(string(f.URL)):
			c.works(id, sp, trans)
		case c.deadly(string(f.URL)):
			c.after(c.fetch/2, func() {
				if c.e.spiders.byID[id] == sp {
					c.hangUp(id, sp.addr)
				}
			})
		default:
			fetch := c.fetch
			if sp.addr == c.slow {
				fetch = 20 * second
			}
			c.after(fetch, func() {
				if c.e.spiders.byID[id] == sp && c.conns[id] {
					c.e.Lines(id, []Line{done})
				}
			})
		}
	}
}

// works says WORKING on a transaction as long as its connection is there, and the spiders are not
// silent.
func (c *crashes) works(id uint32, sp *spider, trans protocol.Trans) {
	c.after(30*second, func() {
		if c.e.spiders.byID[id] == sp && c.conns[id] && !c.silent {
			c.e.Lines(id, []Line{{Status: protocol.Status{Trans: trans, Verb: protocol.Working}}})
			c.works(id, sp, trans)
		}
	})
}

// run lets time pass until nothing is held, and at most so long; it returns how long that took.
func (c *crashes) run(most time.Duration) time.Duration {
	began := c.now
	for c.now-began < most && (c.e.slots.Counts().Held > 0 || c.e.intake.batch != nil) {
		c.e.Advance(c.now, start.Add(c.now))
		wait := c.step()
		next := c.now + second
		if wait >= 0 {
			next = c.now + wait
		}
		for i := range c.todo {
			next = min(next, c.todo[i].at)
		}
		c.now = max(c.now, next)
	}
	return c.now - began
}

// step does what is due, and then has the engine do so.
func (c *crashes) step() (wait time.Duration) {
	for i := 0; i < len(c.todo); {
		if c.todo[i].at > c.now {
			i++
			continue
		}
		do := c.todo[i].do
		c.todo = append(c.todo[:i], c.todo[i+1:]...)
		do()
	}
	for range 10_000 {
		wait = c.e.Step(nil)
		c.most = max(c.most, c.e.InFlight())
		c.collect()
		if wait != 0 {
			return wait
		}
	}
	c.t.Fatalf("at %v: the engine is never through", c.now)
	return 0
}

func (c *crashes) collect() {
	out := &c.e.Out
	for i := range out.Outcomes.Len() {
		o := out.Outcomes.At(i)
		c.ends[o.Kind]++
		c.done[string(o.DocID)] = true
		if o.Kind == docindex.Done && o.Attempts > 1 {
			c.retries++
		}
		if o.Kind == docindex.Timeout {
			c.timed = append(c.timed, string(o.URL))
		}
	}
	dirty, drop := out.Dirty, out.Drop
	*out = Out{}
	for _, id := range drop {
		c.hangUp(id, c.e.spiders.byID[id].addr)
	}
	for _, id := range dirty {
		c.read(id)
	}
}

// TestDeadlyDocuments: what kills spiders ends as timeout, and nothing else does, in a time that
// grows with the square root of what was in flight.
func TestDeadlyDocuments(t *testing.T) {
	for _, test := range []struct {
		spiders, good, deadly int
		within                time.Duration
		change                func(*configs.Config)
	}{
		{spiders: 1, good: 500, deadly: 1, within: 3 * time.Minute},
		{spiders: 1, good: 500, deadly: 5, within: 10 * time.Minute},
		{spiders: 4, good: 500, deadly: 5, within: 10 * time.Minute},
		{spiders: 1, good: 9999, deadly: 1, within: 10 * time.Minute},
		{spiders: 1, good: 0, deadly: 1, within: time.Minute},
		{spiders: 1, good: 0, deadly: 3, within: 20 * time.Minute},
		{spiders: 1, good: 30, deadly: 1, within: time.Minute,
			change: func(c *configs.Config) { c.Spider.MaxAttempts = 1 }},
		{spiders: 1, good: 300, deadly: 1, within: 12 * time.Minute,
			change: func(c *configs.Config) { c.Spider.MaxAttempts = 2 }},
		{spiders: 1, good: 300, deadly: 1, within: 12 * time.Minute,
			change: func(c *configs.Config) { c.Spider.MaxAttempts = 10 }},
		{spiders: 1, good: 300, deadly: 1, within: 12 * time.Minute,
			change: func(c *configs.Config) { c.Spider.MaxInFlight = 7 }},
	} {
		t.Run(fmt.Sprintf("%d+%d at %d", test.good, test.deadly, test.spiders), func(t *testing.T) {
			c := newCrashes(t, test.spiders, test.change)
			c.put(1, 0) // so that the spiders have spoken once
			c.run(time.Minute)
			c.put(test.good, test.deadly)
			took := c.run(test.within)
			t.Logf("%v in %v with %d lines", c.ends, took, c.lines)
			if c.ends[docindex.Done] != test.good+1 || c.ends[docindex.Timeout] != test.deadly {
				t.Errorf("after %v: done %d, timeout %d %.9q; want %d and %d", took, c.ends[docindex.Done],
					c.ends[docindex.Timeout], c.timed, test.good+1, test.deadly)
			}
			if n := len(c.e.spiders.suspects) + c.e.spiders.reserved; n != 0 {
				t.Errorf("%d suspects, %d reservations are left",
					len(c.e.spiders.suspects), c.e.spiders.reserved)
			}
		})
	}
}

// TestSpiderThatCrashesAtOnce, for hours, ends nothing, and is given less and less. Another one
// from the same address gets all done.
func TestSpiderThatCrashesAtOnce(t *testing.T) {
	for _, spoke := range []bool{false, true} {
		c := newCrashes(t, 1, nil)
		if spoke {
			c.put(1, 0)
			c.run(time.Minute)
		}
		before := c.lines
		c.fetch, c.mayfly = 3*second, second
		c.hangUp(1, "spider 0")
		c.put(200, 0)
		if c.run(time.Hour); c.ends[docindex.Timeout] > 0 || c.lines-before > 200+8+4+2+60 {
			t.Errorf("after an hour: outcomes %v, %d lines; want no timeout, and few lines", c.ends, c.lines-before)
		}
		if s := c.e.Stats(); len(s.Notes) != 1 {
			t.Errorf("notes %q; want one on the spider", s.Notes)
		}
		c.mayfly = 0
		if took := c.run(5 * time.Minute); c.ends[docindex.Done] != c.docs {
			t.Errorf("%v after it has come to its senses: outcomes %v; want %d done", took, c.ends, c.docs)
		}
		if s := c.e.Stats(); len(s.Notes) != 0 {
			t.Errorf("notes %q on a spider that works", s.Notes)
		}
	}
}

// TestMuteSpider has a handful of documents at a spider that never says anything: they end, each
// after it was alone there for a status timeout, and not much later than that takes.
func TestMuteSpider(t *testing.T) {
	const timeout = 10 * second
	for docs, most := range map[int]int{1: 3, 2: 5, 3: 7, 5: 9} { // status timeouts, and half of one to go with each
		c := newCrashes(t, 1, func(cfg *configs.Config) { cfg.TimeoutSpiderStatus = timeout })
		c.silent = true
		c.put(docs, 0)
		took := c.run(time.Hour)
		if c.ends[docindex.Timeout] != docs || took > time.Duration(most)*(timeout+timeout/2) {
			t.Errorf("%d documents: outcomes %v after %v; want %v at most", docs, c.ends, took,
				time.Duration(most)*(timeout+timeout/2))
		}
	}
}

// TestSilenceCounts: documents at a spider that never says anything are sent as often as
// spider.max_attempts says, however many are there at once, and end as timeout. Only with one
// attempt, what was lost in company is sent once more, since it may have been another one's fault.
func TestSilenceCounts(t *testing.T) {
	for _, attempts := range []int{1, 2, 3, 5, 10} {
		for _, docs := range []int{1, 2, 7, 40} {
			c := newCrashes(t, 1, func(cfg *configs.Config) {
				cfg.TimeoutSpiderStatus, cfg.Spider.MaxAttempts = 10*second, attempts
			})
			c.silent = true
			c.put(docs, 0)
			c.run(24 * time.Hour)
			want := attempts
			if attempts == 1 && docs > 1 {
				want = 2
			}
			if c.lines != docs*want || c.ends[docindex.Timeout] != docs {
				t.Errorf("%d documents, %d attempts: %d lines, outcomes %v; want %d lines",
					docs, attempts, c.lines, c.ends, docs*want)
			}
		}
	}
}

// TestStoodStill stops a spider with 200 documents that has spoken: the connection ends at the
// timeout, and another one gets all done, with no outcome but that.
func TestStoodStill(t *testing.T) {
	c := newCrashes(t, 1, func(cfg *configs.Config) { cfg.TimeoutSpiderStatus = 10 * second })
	c.put(1, 0)
	c.run(time.Minute)
	c.silent = true
	c.put(200, 0)
	c.run(5 * second)
	if n := c.e.InFlight(); n != 200 {
		t.Fatalf("%d documents in flight; want 200", n)
	}
	c.silent = false
	if took := c.run(5 * time.Minute); c.ends[docindex.Done] != 201 || c.e.stats.Expired != 200 {
		t.Errorf("after %v: outcomes %v, %d expired; want 201 done, and 200 expired", took, c.ends, c.e.stats.Expired)
	}
}

// TestOneHangs has one document that its spider says nothing of, among others that it answers: that
// one counts, and ends; the others cost no attempt.
func TestOneHangs(t *testing.T) {
	c := newCrashes(t, 1, func(cfg *configs.Config) { cfg.TimeoutSpiderStatus = 10 * second })
	c.deadly = func(string) bool { return false }
	c.hangs = func(url string) bool { return strings.Contains(url, "deadly") }
	for n := range 60 {
		hangs := map[int]int{10: 1}[n]
		c.put(10-hangs, hangs)
		c.run(second)
	}
	if took := c.run(time.Minute); c.ends[docindex.Done] != 599 || c.ends[docindex.Timeout] != 1 {
		t.Errorf("after %v: outcomes %v; want 599 done and 1 timeout", took, c.ends)
	}
	if c.retries != 0 {
		t.Errorf("%d documents were done after more than one attempt; want none", c.retries)
	}
}

// TestCompany: ever fewer, and alone at the last attempt.
func TestCompany(t *testing.T) {
	for attempts := 1; attempts < 12; attempts++ {
		for docs := 1; docs < 10_000; docs = docs*3/2 + 1 {
			n := docs
			for left := attempts - 1; left > 0; left-- {
				next := companyOf(n, left)
				if next < 1 || n > 1 && next >= n || left == 1 && next != 1 {
					t.Fatalf("companyOf(%d, %d) = %d", n, left, next)
				}
				n = next
			}
		}
	}
}

// TestOthersGoOn: while one spider tries suspects, the other one takes what comes.
func TestOthersGoOn(t *testing.T) {
	c := newCrashes(t, 2, nil)
	c.put(100, 0)
	c.run(time.Minute)
	c.put(400, 1)
	for c.e.stats.Lost == 0 && c.now < 5*time.Minute {
		c.run(second / 10)
	}
	first := c.docs
	c.put(200, 0)
	c.run(10 * second)
	late := 0
	for n := first; n < c.docs; n++ {
		if !c.done[fmt.Sprint(n)] {
			late++
		}
	}
	if late > 0 || len(c.e.spiders.suspects) == 0 {
		t.Errorf("%d of %d fresh documents wait, %d suspects are left; want none to wait for suspects",
			late, c.docs-first, len(c.e.spiders.suspects))
	}
}

// TestEndlessSuspect: a suspect that its spider works at for an hour does not keep the other
// suspects waiting so long.
func TestEndlessSuspect(t *testing.T) {
	c := newCrashes(t, 1, nil)
	c.deadly = func(string) bool { return false }
	c.endless = func(url string) bool { return strings.Contains(url, "deadly") }
	c.put(5, 0)
	c.run(5 * second) // the spider has spoken
	c.put(40, 1)
	at := func() *spider { // the spider that has the endless document
		for id, s := range c.e.spiders.suspects {
			if d := c.e.slots.Doc(id); s.at != 0 && strings.Contains(string(d.AppendURL(nil)), "deadly") {
				return c.e.spiders.byID[s.at]
			}
		}
		return nil
	}
	c.run(second / 10)
	c.hangUp(1, "spider 0")
	for at() == nil && c.now < 10*time.Minute {
		c.run(second / 10)
	}
	if at() == nil {
		t.Fatal("the endless document is at no spider again")
	}
	for id, sp := range c.e.spiders.byID {
		if sp == at() {
			c.hangUp(uint32(id), sp.addr)
			break
		}
	}
	for c.ends[docindex.Done] < 45 && c.now < 20*time.Minute {
		c.run(10 * second)
	}
	if c.ends[docindex.Done] != 45 || c.ends[docindex.Timeout] != 0 {
		t.Errorf("after %v: outcomes %v; want 45 done beside the endless one", c.now, c.ends)
	}
	if c.run(4 * time.Hour); c.ends[docindex.Timeout] != 1 || len(c.e.spiders.suspects) != 0 {
		t.Errorf("after %v: outcomes %v, %d suspects; want the endless document to end as timeout", c.now,
			c.ends, len(c.e.spiders.suspects))
	}
}

// TestEndlessAndSilent: a document that reaches spider.max_fetch and the status timeout at the same
// moment counts as endless, though its spider stood still with another document.
func TestEndlessAndSilent(t *testing.T) {
	c := newCrashes(t, 1, func(cfg *configs.Config) {
		cfg.TimeoutSpiderStatus, cfg.Spider.MaxFetch, cfg.Spider.MaxAttempts = time.Minute, 10*time.Minute, 1
	})
	c.endless = func(url string) bool { return strings.Contains(url, "deadly") }
	c.put(1, 0)
	c.run(time.Minute)
	c.put(0, 1)
	c.after(9*time.Minute+second, func() { c.silent = true }) // it said WORKING for the last time a second ago
	c.after(9*time.Minute+50*second, func() { c.put(1, 0) })
	c.after(10*time.Minute+second/2, func() {
		if s := &c.e.stats; s.Expired != 1 || s.Lost != 1 {
			t.Errorf("%d documents expired and %d are lost; want one each", s.Expired, s.Lost)
		}
		c.silent = false
	})
	c.run(12 * time.Minute)
	if c.ends[docindex.Timeout] != 1 || c.ends[docindex.Done] != 2 || c.lines != 4 {
		t.Errorf("outcomes %v after %d lines; want 1 timeout and 2 done after 4", c.ends, c.lines)
	}
}

// TestSlowTester: documents that were lost with a spider are tried again at quick spiders, beside
// one that is slow.
func TestSlowTester(t *testing.T) {
	c := newCrashes(t, 4, func(cfg *configs.Config) { cfg.Spider.MaxAttempts = 1 })
	c.slow, c.fetch = "spider 0", second/2
	for range 60 {
		c.put(20, 0)
		c.run(second)
	}
	c.put(100, 0)
	c.run(second / 10)
	for id, sp := range c.e.spiders.byID {
		if sp != nil && sp.addr == "spider 1" {
			c.hangUp(uint32(id), sp.addr)
			break
		}
	}
	c.run(second / 10)
	lost, began := int(c.e.stats.Lost), c.now
	for len(c.e.spiders.suspects) > 0 && c.now < began+time.Hour {
		c.put(20, 0)
		c.run(second)
	}
	if took := c.now - began; lost < 10 || took > time.Duration(lost)*5*second {
		t.Errorf("%d documents that were lost are tried again within %v; want more than 10, in less "+
			"than 5 s each", lost, took)
	}
}
