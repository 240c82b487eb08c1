package engine

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"urlserver/configs"
	"urlserver/internal/robots"
	"urlserver/protocol"
)

var (
	errDown     = errors.New("no name server answers")
	errServfail = errors.New("it answered SERVFAIL")
	errNoHost   = errors.New("no such host")
)

func (w *walk) cached(host []byte) (netip.Addr, error, bool) {
	if w.ends[string(host)] <= w.now {
		return netip.Addr{}, nil, false
	}
	a := w.names[string(host)]
	return a.addr, a.err, true
}

func walkAddr(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + n%walkAddrs)}) }

func (w *walk) lookUp(name string) {
	w.after(w.some(second), func() {
		n := 0
		_, _ = fmt.Sscanf(name, "h%d.", &n)
		a := answer{addr: walkAddr(n/2 + w.rng.IntN(2)*w.rng.IntN(3))}
		switch {
		case w.bad(5):
			a = answer{err: errNoHost}
		case w.bad(5):
			w.e.Resolved(name, netip.Addr{}, errDown)
			return
		case w.bad(20):
			w.e.Resolved(name, netip.Addr{}, errServfail)
			return
		}
		w.names[name], w.ends[name] = a, w.now+w.some(2*second)
		w.e.Resolved(name, a.addr, a.err)
	})
}

func (w *walk) index(a *Ask) {
	rejected := map[string]bool{}
	for _, name := range a.Reject {
		rejected[name] = true
	}
	p := &Prepared{}
	for range w.rng.IntN(a.Max) {
		host := fmt.Sprintf("h%d.example", w.rng.IntN(walkHosts))
		if w.calm || rejected[host] && !w.bad(5) {
			continue
		}
		w.addTo(&p.Batch, host)
	}
	p.Prepare()
	w.after(w.some(200*time.Millisecond), func() { w.e.Answered(p) })
}

func (w *walk) fetch(f Fetch) {
	w.after(w.some(20*time.Millisecond), func() { // it leaves
		if w.now > f.Start || w.now > f.By {
			w.e.Fetched(f.ID, robots.Response{Err: robots.ErrLate})
			return
		}
		w.e.FetchSent(f.ID)
		w.request("a request for "+f.URL, walkHost([]byte(f.URL)), f.Addr)
		w.after(w.some(2*second), func() { w.e.Fetched(f.ID, w.robots()) })
	})
}

func (w *walk) robots() robots.Response {
	switch {
	case w.bad(10):
		return robots.Response{Err: errors.New("connection reset")}
	case w.bad(5):
		return robots.Response{Status: 503, RetryAfter: w.some(3 * second)}
	case w.chance(10):
		return robots.Response{Status: 301, Location: fmt.Sprintf("http://h%d.example/robots.txt",
			w.rng.IntN(2*walkHosts))}
	case w.chance(10):
		return robots.Response{Status: 200, Body: []byte("User-agent: *\nCrawl-delay: 2\nDisallow: /1\n")}
	}
	return robots.Response{Status: 404}
}

// connect has a spider come that stays for a while.
func (w *walk) connect() { w.connectAs([]string{"", "", "p1", "p2"}[w.rng.IntN(4)]) }

func (w *walk) connectAs(pool string) {
	id := w.e.Connected("spider")
	w.conns[id]++
	if w.spiders[id] = true; pool != "" {
		w.e.JoinPool(id, pool)
	}
	if w.chance(20) {
		w.e.Lines(id, []Line{{IsRoom: true, Room: 1 + w.rng.IntN(20)}})
	}
	w.after(w.some(30*second), func() {
		if !w.calm {
			w.hangUp(id)
		}
	})
}

// hangUp ends the connection of a spider, which comes again.
func (w *walk) hangUp(id uint32) {
	if !w.spiders[id] {
		return
	}
	delete(w.spiders, id)
	w.e.Gone(id)
	w.after(w.some(2*second), w.connect)
}

func (w *walk) read(id uint32) {
	lines := bytes.Clone(w.e.Output(id, nil))
	if lines == nil {
		return
	}
	conn, sent := w.conns[id], []*walkRequest(nil)
	w.after(w.some(time.Millisecond), func() {
		if w.spiders[id] && w.conns[id] == conn {
			for _, r := range sent {
				w.written(r)
			}
			w.e.Written(id)
			w.read(id)
		}
	})
	for line := range bytes.Lines(lines) {
		r := w.readLine(line)
		if sent = append(sent, r); !w.bad(5) {
			w.answer(id, r)
		}
	}
}

func (w *walk) answer(id uint32, r *walkRequest) {
	trans, conn := r.trans, w.conns[id]
	status := protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200, HasStatus: true}
	switch {
	case w.bad(10):
		status.Code = 503
	case w.bad(10):
		status = protocol.Status{Trans: trans, Verb: protocol.Back, Seconds: w.rng.IntN(3)}
	case w.bad(5):
		working := Line{Status: protocol.Status{Trans: trans, Verb: protocol.Working}}
		w.after(w.some(second), func() {
			if w.spiders[id] {
				w.e.Lines(id, []Line{working})
			}
		})
	}
	w.after(w.some(second), func() {
		if w.spiders[id] {
			if w.conns[id] == conn { // or it is another spider by now, to which the answer means nothing
				w.written(r)
			}
			w.e.Lines(id, []Line{{Status: status}})
		}
	})
}

// operate has the operator do something now and then.
func (w *walk) operate() {
	defer w.after(w.some(5*second), w.operate)
	if w.calm {
		return
	}
	switch w.rng.IntN(9) {
	case 0:
		w.e.Block(fmt.Appendf(nil, "h%d.example", w.rng.IntN(walkHosts)), w.some(5*second))
	case 1:
		w.e.Pause(true)
		w.after(w.some(second), func() { w.e.Pause(false) })
	case 2, 3:
		w.cfg.Rules = w.rules()
		w.e.Reconfigure(w.cfg)
	case 4:
		w.e.WakeIndex()
	default:
		w.crawlControl()
	}
}

func (w *walk) rules() (rules []configs.HostRule) {
	for range w.rng.IntN(6) {
		r := configs.HostRule{Hosts: []string{fmt.Sprintf("h%d.example", w.rng.IntN(walkHosts))}}
		switch w.rng.IntN(5) {
		case 0:
			r.Block = true
		case 1:
			r.PerSec = 0.5
		case 2:
			r.Concurrent = 1 + w.rng.IntN(4)
		case 3:
			r.Networks = []netip.Prefix{netip.PrefixFrom(walkAddr(w.rng.IntN(walkAddrs)), 32)}
			r.Hosts, r.Group = nil, "b"
		default:
			r.Group = string(rune('a' + w.rng.IntN(3)))
		}
		rules = append(rules, r)
	}
	return rules
}
