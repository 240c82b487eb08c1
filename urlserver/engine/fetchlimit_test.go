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
	"urlserver/internal/robots"
	"urlserver/protocol"
)

// robotsWeb is an engine with hosts whose robots.txt hang for robots.timeout, or answer at once,
// and a spider whose documents end at once.
type robotsWeb struct {
	*testing.T
	e       *Engine
	spider  uint32
	sent    map[string]int // documents, by host
	now     time.Duration
	hanging []hanging
	open    int                      // most requests open at once
	file    []byte                   // what robots.txt of hosts in 10.8 say
	ended   map[string]docindex.Kind // by DOC_ID
	work    int                      // for questions
	answers []question               // that are being worked at
	fetches int
	asked   map[string]time.Duration // by host: when its robots.txt was asked for last
	notes   map[string][]byte        // that the index keeps; nil: none
	later   time.Duration            // that the wall clock is ahead by
}

// question is one that is answered at some time.
type question struct {
	at      time.Duration
	allowed []bool
	work    int
}

type hanging struct {
	id uint32
	at time.Duration
}

func newRobotsWeb(t *testing.T, change func(c *configs.Config)) *robotsWeb {
	cfg := configs.Default()
	cfg.QueueCount = 20_000
	if change != nil {
		change(&cfg)
	}
	w := &robotsWeb{T: t, asked: map[string]time.Duration{}, sent: map[string]int{}, ended: map[string]docindex.Kind{}}
	w.e = New(cfg, Options{Cached: func(host []byte) (netip.Addr, error, bool) {
		addr, err := netip.ParseAddr(string(host))
		return addr, nil, err == nil
	}})
	w.spider = w.e.Connected("spider")
	return w
}

// put has the index give one document of each of n hosts in a network, "10.1": those in 10.9 hang.
func (w *robotsWeb) put(network string, n int) {
	p := &Prepared{}
	for i := range n {
		p.Batch.Add(fmt.Append(nil, network, "-", i), fmt.Appendf(nil, "http://%s.%d.%d/", network, i/250, i%250), 0)
	}
	p.Prepare()
	for w.e.Answered(p); w.e.intake.batch != nil; {
		w.run(w.now)
	}
}

// putAll has the index give a document of each of n hosts for each path.
func (w *robotsWeb) putAll(network string, n int, paths ...string) {
	p := &Prepared{}
	for j, path := range paths {
		for i := range n {
			p.Batch.Add(fmt.Append(nil, network, "-", i, "-", j),
				fmt.Appendf(nil, "http://%s.%d.%d%s", network, i/250, i%250, path), 0)
		}
	}
	p.Prepare()
	for w.e.Answered(p); w.e.intake.batch != nil; {
		w.run(w.now)
	}
}

// run lets time pass until a moment, in steps of 10 ms.
func (w *robotsWeb) run(until time.Duration) {
	for ; w.now <= until; w.now += 10 * time.Millisecond {
		w.e.Advance(w.now, start.Add(w.later+w.now))
		for len(w.hanging) > 0 && w.hanging[0].at <= w.now {
			w.e.Fetched(w.hanging[0].id, robots.Response{})
			w.hanging = w.hanging[1:]
		}
		if len(w.answers) > 0 && w.answers[0].at <= w.now {
			w.e.Judged(w.answers[0].allowed, w.answers[0].work)
			w.answers = nil
		}
		for w.e.Step(nil) == 0 {
		}
		if kept := w.e.robots.cache.bytes; kept > w.e.cfg.Robots.Memory || kept < 0 {
			w.Fatalf("at %v: rules take %d bytes", w.now, kept)
		}
		w.question()
		for _, f := range w.e.Out.Fetches {
			w.asked[f.Addr.String()] = w.now
			w.fetches++
			if strings.HasPrefix(f.Addr.String(), "10.8.") {
				w.e.Fetched(f.ID, w.e.robots.policy.Read(robots.Response{Status: 200, Body: w.file}, f.Targets...))
			} else if strings.HasPrefix(f.Addr.String(), "10.9.") {
				w.hanging = append(w.hanging, hanging{f.ID, w.now + w.e.cfg.Robots.Timeout})
			} else {
				w.e.Fetched(f.ID, robots.Response{Status: 404})
			}
		}
		w.open = max(w.open, len(w.hanging))
		w.answer()
		for i := range w.e.Out.Outcomes.Len() {
			o := w.e.Out.Outcomes.At(i)
			w.ended[string(o.DocID)] = o.Kind
		}
		w.exchangeNotes()
		w.e.Out = Out{}
	}
}

// question answers what the engine asks, after the time that it takes.
func (w *robotsWeb) question() {
	if q := w.e.Out.Question; q != nil {
		allowed, work := q.Rules.AllowedAll(q.Targets)
		w.answers = []question{{w.now + time.Duration(work), allowed, work}}
		w.work += work
	}
}

// answer has the spider end the documents that it got.
func (w *robotsWeb) answer() {
	out := bytes.Clone(w.e.Output(w.spider, nil))
	if out == nil {
		return
	}
	w.e.Written(w.spider)
	var lines []Line
	for line := range bytes.Lines(out) {
		f, err := protocol.ParseFetch(bytes.TrimSpace(line))
		if err != nil {
			w.Fatal(err)
		}
		trans, _ := protocol.ParseTrans(f.Trans)
		lines = append(lines, Line{Status: protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200,
			HasStatus: true}})
		w.sent[f.Addr.String()]++
	}
	w.e.Lines(w.spider, lines)
}

// late counts the hosts of a network whose robots.txt was not asked for at a time.
func (w *robotsWeb) late(network string, n int, from, until time.Duration) (late int) {
	for i := range n {
		if at, ok := w.asked[fmt.Sprintf("%s.%d.%d", network, i/250, i%250)]; !ok || at < from || at > until {
			late++
		}
	}
	return late
}

// TestHangingRobotsHoldUpNoNewHosts: hosts whose robots.txt hang are known first, and again when
// they are tried again; those that answer are asked within seconds all the same.
func TestHangingRobotsHoldUpNoNewHosts(t *testing.T) {
	const hang, good = 3000, 500
	w := newRobotsWeb(t, nil)
	w.put("10.9", hang)
	w.run(3 * second)
	w.put("10.1", good)
	w.run(60 * second)
	if late := w.late("10.1", good, 0, 20*second); late > 0 {
		t.Errorf("%d of %d good hosts were not asked for robots.txt within 20 s; now %d", late, good,
			w.late("10.1", good, 0, w.now))
	}
	if late := w.late("10.9", hang, 0, 30*second); late > 0 {
		t.Errorf("%d of %d hosts that hang were not asked within 30 s", late, hang)
	}
	if most := (firstOpen + againOpen) * (1 + slowPlaces); w.open > most || w.open < firstOpen {
		t.Errorf("%d requests were open at once; want up to %d", w.open, most)
	}
	again := w.now + w.e.cfg.Robots.ErrorTTL - 30*second
	w.run(again)
	w.put("10.2", good)
	w.run(again + 30*second)
	if late := w.late("10.2", good, again, again+5*second); late > 0 {
		t.Errorf("%d of %d hosts that were new during the second tries were not asked within 5 s", late, good)
	}
	w.run(again + 300*second)
	if late := w.late("10.9", hang, again-60*second, w.now); late > 0 {
		t.Errorf("%d of %d hosts that hang were not tried again", late, hang)
	}
}
