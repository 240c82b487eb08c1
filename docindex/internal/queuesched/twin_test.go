package queuesched_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// The twin knows all URLs, and answers each question by looking at all of them.
type twin struct {
	now     int64
	urls    []*url
	queues  map[uint32]*queue
	presets map[string]*queue        // what is set on queues that are not there
	pauses  map[string]int64         // by host
	before  map[string]int64         // what slots are held to of them
	gaps    map[string]int64         // that hosts want, as the slots have learned
	called  map[string]int64         // when calls were given something of a host
	orders  map[string]*hostOverride // that hosts are under
	rules   map[string]docindex.HostRule
	slotGap int64
	delay   int64 // default
	chosen  bool
}

type url struct {
	queue    *queue
	host     string
	due      int64
	state    queuesched.State
	consumer queuesched.Consumer
}

type queue struct {
	id         uint32
	crawl, key string
	mixed      bool // has had a URL of another host than its key
	serving    *call
	again      bool  // when that began, there was no delay
	delay      int64 // -1: none of its own
	blocked    int64
	limit      uint32
	skipUntil  int64
	served     [2]int64
}

// hostOverride is what is set on a host, and when something of it was given out, or came back from
// slots.
type hostOverride struct{ blocked, delay, asked int64 }

// allowed tells whether a host's order lets it be asked.
func (w *twin) allowed(host string, consumer queuesched.Consumer) bool {
	o := w.orders[host]
	switch {
	case o == nil:
		return true
	case o.blocked > w.now:
		return false
	case o.delay == 0:
		return true
	}
	out := w.hostOut(host, queuesched.SlotConsumer) || w.hostOut(host, queuesched.RemoteConsumer)
	return (consumer == queuesched.FrontierConsumer || !out) && (o.asked == 0 || o.asked+o.delay <= w.now)
}

func newQueue(crawl, key string) *queue { return &queue{crawl: crawl, key: key, delay: -1} }

// call is a GetURLs under way.
type call struct {
	real  [2]queuesched.Call
	crawl string
	all   bool
	most  int
	at    *queue
	seen  map[*queue]bool // served by it, and by nobody else since
	owed  map[*queue]bool // could be served ever since it began, and no other call has changed the turns since
}

func (w *twin) count(is func(u *url) bool) (n int) {
	for _, u := range w.urls {
		if is(u) {
			n++
		}
	}
	return n
}

func (w *twin) out(q *queue, consumer queuesched.Consumer) int {
	return w.count(func(u *url) bool {
		return u.queue == q && u.state == queuesched.InTransit &&
			u.consumer == consumer
	})
}

func (w *twin) hostOut(host string, consumer queuesched.Consumer) bool {
	return w.count(func(u *url) bool {
		return u.host == host && u.state == queuesched.InTransit &&
			u.consumer == consumer
	}) > 0
}

// atSlots is how many URLs of a queue slots have, of this daemon or others.
func (w *twin) atSlots(q *queue) int {
	return w.out(q, queuesched.SlotConsumer) + w.out(q, queuesched.RemoteConsumer)
}

func (w *twin) inTransit(q *queue) int { return w.atSlots(q) + w.out(q, queuesched.FrontierConsumer) }

// due is when the first scheduled URL of a queue is due.
func (w *twin) due(q *queue) int64 {
	first := int64(queuesched.Never)
	for _, u := range w.urls {
		if u.queue == q && u.state == queuesched.Scheduled {
			first = min(first, u.due)
		}
	}
	return first
}

// pace is the delay between two servings of a queue.
func (w *twin) pace(q *queue) int64 {
	if q.delay >= 0 {
		return q.delay
	}
	return w.delay
}

// ready tells whether a queue may be served at a consumer, whatever a call's maximum.
func (w *twin) ready(q *queue, consumer queuesched.Consumer) bool {
	completed := w.count(func(u *url) bool { return u.queue == q && u.state == queuesched.Completed })
	if consumer != queuesched.FrontierConsumer {
		completed += w.inTransit(q)
	}
	if q.serving != nil || w.due(q) > w.now || q.blocked > w.now || q.skipUntil > w.now || q.limit > 0 &&
		completed >= int(q.limit) {
		return false
	}
	delay, own := w.pace(q), q.delay >= 0 || w.chosen
	since := func(consumer queuesched.Consumer) bool {
		return q.served[consumer] == 0 || q.served[consumer]+delay <= w.now
	}
	if consumer == queuesched.FrontierConsumer {
		return since(queuesched.FrontierConsumer) && since(queuesched.SlotConsumer) &&
			(q.mixed || w.free(q.key, queuesched.FrontierConsumer))
	}
	if own && delay > 0 && (w.atSlots(q) > 0 || !since(queuesched.SlotConsumer)) {
		return false
	}
	return since(queuesched.FrontierConsumer) && (q.mixed || w.free(q.key, consumer))
}

// free tells whether a host may be asked at a consumer.
func (w *twin) free(host string, consumer queuesched.Consumer) bool {
	if !w.allowed(host, consumer) {
		return false
	}
	gap := w.gaps[host]
	if rule := w.rules[host]; !rule.Barred {
		gap = max(gap, rule.Gap)
	}
	if consumer == queuesched.FrontierConsumer && w.rules[host].Barred {
		return false
	}
	if consumer != queuesched.FrontierConsumer {
		gap = max(gap, w.slotGap)
	}
	if at := w.called[host]; at > 0 && gap > 0 && at+gap > w.now {
		return false
	}
	for _, other := range []queuesched.Consumer{queuesched.SlotConsumer, queuesched.FrontierConsumer,
		queuesched.RemoteConsumer} {
		if other != consumer && w.hostOut(host, other) {
			return false
		}
	}
	if consumer == queuesched.FrontierConsumer {
		return w.pauses[host] <= w.now
	}
	return w.before[host] <= w.now
}

func (w *twin) open(c *call, q *queue) bool {
	return (c.all || c.crawl == q.crawl) && w.ready(q, queuesched.FrontierConsumer) &&
		(c.most == 0 || w.inTransit(q) < c.most)
}

// rig drives two real ones and the twin side by side. The real ones have to agree to the letter.
type rig struct {
	t    *testing.T
	rnd  *rand.Rand
	real [2]*queuesched.Scheduler
	rung [2]int
	twin
	calls []*call
	waits []*wait
	step  int
}

// both asks both real ones.
func both[T comparable](r *rig, ask func(i int, d *queuesched.Scheduler) T) T {
	r.t.Helper()
	a, b := ask(0, r.real[0]), ask(1, r.real[1])
	if a != b {
		r.t.Fatalf("step %d: two doors that were asked the same answer %v and %v", r.step, a, b)
	}
	return a
}

func (r *rig) do(act func(d *queuesched.Scheduler)) {
	act(r.real[0])
	act(r.real[1])
}

func TestTwin(t *testing.T) {
	steps := 1500
	if testing.Short() {
		steps = 300
	}
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := &rig{t: t, rnd: rand.New(rand.NewPCG(seed, 3))}
			for i := range r.real {
				r.real[i] = queuesched.New(func() { r.rung[i]++ })
			}
			r.twin = twin{
				now: 1_000_000, queues: map[uint32]*queue{}, presets: map[string]*queue{},
				pauses: map[string]int64{}, before: map[string]int64{}, delay: queuesched.DefaultDelay,
				gaps: map[string]int64{}, called: map[string]int64{}, orders: map[string]*hostOverride{},
			}
			r.keepHosts()
			for r.step = range steps {
				r.act()
				r.check()
			}
		})
	}
}

func (r *rig) act() {
	switch n := r.rnd.IntN(20); {
	case n < 5:
		r.put()
	case n < 7:
		r.pass(int64(r.rnd.IntN(8)) * 250)
	case n < 8:
		r.set()
	case n < 9 && len(r.calls) < 3:
		r.begin()
	case n < 14:
		r.goOn()
	case n < 15:
		r.slots()
	case n < 19:
		r.news()
	case r.rnd.IntN(4) > 0:
		host, until := r.host(), r.now+int64(r.rnd.IntN(3000))
		r.pauses[host] = max(r.pauses[host], until)
		r.gaps[host] = int64(r.rnd.IntN(3)) * 700
		if r.rnd.IntN(4) == 0 {
			r.before[host] = max(r.before[host], until)
			r.do(func(d *queuesched.Scheduler) { d.RestorePause([]byte(host), until, r.gaps[host], r.now) })
			break
		}
		r.do(func(d *queuesched.Scheduler) { d.PauseHost([]byte(host), until, r.gaps[host], r.now) })
	default:
		r.drop()
	}
}

// keepHosts has a queue without URLs for each host, so that none is forgotten.
func (r *rig) keepHosts() {
	for n := range hosts {
		host := fmt.Appendf(nil, "h%d", n)
		r.do(func(d *queuesched.Scheduler) { d.Open([]byte("keep"), host, host, r.now) })
	}
}

const hosts = 6

func (r *rig) host() string { return fmt.Sprintf("h%d", r.rnd.IntN(hosts)) }

func (r *rig) crawl() string { return []string{"", "c", "d"}[r.rnd.IntN(3)] }

func (r *rig) pass(ms int64) {
	r.now += ms
	r.do(func(d *queuesched.Scheduler) {
		for d.Advance(r.now) {
		}
	})
}

func (r *rig) put() {
	crawl, host := r.crawl(), r.host()
	key := host
	if r.rnd.IntN(4) == 0 {
		key = []string{r.host(), "mixed"}[r.rnd.IntN(2)]
	}
	id := both(r, func(_ int, d *queuesched.Scheduler) uint32 {
		return d.Open([]byte(crawl), []byte(key), []byte(host), r.now)
	})
	q := r.queues[id]
	if q == nil {
		if q = r.presets[crawl+"/"+key]; q == nil {
			q = newQueue(crawl, key)
		}
		delete(r.presets, crawl+"/"+key)
		q.id, r.queues[id] = id, q
	}
	if q.crawl != crawl || q.key != key {
		r.t.Fatalf("step %d: Open(%s, %s) is the queue %+v", r.step, crawl, key, q)
	}
	q.mixed = q.mixed || key != host
	r.urls = append(r.urls, &url{queue: q, host: host, due: r.now + []int64{-5000, 0, 0, 500, 4000}[r.rnd.IntN(5)]})
	r.do(func(d *queuesched.Scheduler) {
		d.Count(id, queuesched.Scheduled)
		d.SetDue(id, r.due(q), r.now)
	})
}

// order sets something on a host.
func (r *rig) order() {
	host := r.host()
	o := r.orders[host]
	if o == nil {
		o = &hostOverride{}
		for _, q := range r.queues {
			if q.key == host {
				o.asked = max(o.asked, q.served[0], q.served[1])
			}
		}
		r.orders[host] = o
	}
	var s queuesched.Settings
	if r.rnd.IntN(2) == 0 {
		o.delay = int64(r.rnd.IntN(3)) * 800
		s.Delay = clone(&o.delay)
	} else {
		o.blocked = (r.now + 2000) * int64(r.rnd.IntN(2))
		s.Blocked = clone(&o.blocked)
	}
	if o.blocked <= r.now && o.delay == 0 {
		delete(r.orders, host)
	}
	r.do(func(d *queuesched.Scheduler) { d.SetHostOverride([]byte(host), s, r.now) })
}

// rule changes the rules of hosts.
func (r *rig) rule() {
	r.rules = map[string]docindex.HostRule{}
	for range 2 * r.rnd.IntN(3) {
		r.rules[r.host()] = docindex.HostRule{Barred: r.rnd.IntN(2) == 0, Gap: int64(r.rnd.IntN(3)) * 900}
	}
	of := func(host []byte) docindex.HostRule { return r.rules[string(host)] }
	if len(r.rules) == 0 {
		of = nil
	}
	r.do(func(d *queuesched.Scheduler) {
		d.SetRules(of)
		for next := d.RefreshSome(0, r.now); next != 0; next = d.RefreshSome(next, r.now) {
		}
	})
}

func (r *rig) set() {
	switch r.rnd.IntN(12) {
	case 0, 1, 2:
		r.order()
		return
	case 3:
		r.rule()
		return
	}
	if r.rnd.IntN(8) == 0 {
		r.slotGap = int64(r.rnd.IntN(3)) * 600
		r.do(func(d *queuesched.Scheduler) { d.SetSlotGap(r.slotGap) })
		r.delay, r.chosen = int64(r.rnd.IntN(4))*500, true
		r.do(func(d *queuesched.Scheduler) {
			d.SetDefaultDelay(r.delay)
			for next := d.RefreshSome(0, r.now); next != 0; next = d.RefreshSome(next, r.now) {
			}
		})
		return
	}
	crawl, key := r.crawl(), r.host()
	q := r.presets[crawl+"/"+key]
	for _, one := range r.queues {
		if one.crawl == crawl && one.key == key {
			q = one
		}
	}
	if q == nil {
		q = newQueue(crawl, key)
		r.presets[crawl+"/"+key] = q
	}
	var s queuesched.Settings
	switch r.rnd.IntN(3) {
	case 0:
		q.delay = int64(r.rnd.IntN(4)) * 500
		s.Delay = &q.delay
	case 1:
		q.blocked = (r.now + 3000) * int64(r.rnd.IntN(2))
		s.Blocked = &q.blocked
	default:
		q.limit = uint32(r.rnd.IntN(4))
		s.Limit = &q.limit
	}
	copied := queuesched.Settings{Delay: clone(s.Delay), Blocked: clone(s.Blocked), Limit: clone(s.Limit)}
	r.do(func(d *queuesched.Scheduler) { d.Set([]byte(crawl), []byte(key), copied, r.now) })
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
