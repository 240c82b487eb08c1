package engine

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/protocol"
	"urlserver/robots"
)

// robotsWeb is an engine with hosts whose robots.txt hang for robots.timeout, or answer at once, and a
// spider whose documents end at once.
type robotsWeb struct {
	*testing.T
	e       *Engine
	spider  uint32
	sent    map[string]int // documents, by host
	now     time.Duration
	hanging []hanging
	open    int                      // most requests open at once
	asked   map[string]time.Duration // by host: when its robots.txt was asked for last
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
	w := &robotsWeb{T: t, asked: map[string]time.Duration{}, sent: map[string]int{}}
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
	w.e.Answered(p)
}

// run lets time pass until a moment, in steps of 10 ms.
func (w *robotsWeb) run(until time.Duration) {
	for ; w.now <= until; w.now += 10 * time.Millisecond {
		w.e.Advance(w.now, start.Add(w.now))
		for len(w.hanging) > 0 && w.hanging[0].at <= w.now {
			w.e.Fetched(w.hanging[0].id, robots.Response{})
			w.hanging = w.hanging[1:]
		}
		for w.e.Step(nil) == 0 {
		}
		for _, f := range w.e.Out.Fetches {
			w.asked[f.Addr.String()] = w.now
			if strings.HasPrefix(f.Addr.String(), "10.9.") {
				w.hanging = append(w.hanging, hanging{f.ID, w.now + w.e.cfg.Robots.Timeout})
			} else {
				w.e.Fetched(f.ID, robots.Response{Status: 404})
			}
		}
		w.open = max(w.open, len(w.hanging))
		w.answer()
		w.e.Out = Out{}
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
		lines = append(lines, Line{Status: protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200, HasStatus: true}})
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

// TestHangingRobotsHoldUpNoNewHosts: hosts whose robots.txt hang are known first, and again when they are
// tried again; those that answer are asked within seconds all the same.
func TestHangingRobotsHoldUpNoNewHosts(t *testing.T) {
	const hang, good = 3000, 500
	w := newRobotsWeb(t, nil)
	w.put("10.9", hang)
	w.run(3 * second)
	w.put("10.1", good)
	w.run(60 * second)
	if late := w.late("10.1", good, 0, 20*second); late > 0 {
		t.Errorf("%d of %d good hosts were not asked for robots.txt within 20 s; now %d", late, good, w.late("10.1", good, 0, w.now))
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
