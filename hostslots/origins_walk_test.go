package hostslots

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// originsWalk drives slots by random events on few hosts with many origins and pool queues each.
// After each event it compares the lists, heaps and indexes of these with what it finds by looking
// at all records.
type originsWalk struct {
	t     *testing.T
	rng   *rand.Rand
	s     *Slots
	now   time.Duration
	docs  int
	open  []TransID
	loose []uint32 // documents that are neither queued nor at a spider
	most  int      // queues of a host that offered documents at a time
}

// originForms is how the key of an origin is made of its host. Not all end with the host.
var originForms = []string{
	"http://%s", "https://%s", "http://%s:81", "http://%s:82", "https://%s:81", "http://%s.", "https://%s.:9", "%s",
	"http://[%s]", "https://[%s]:4", "http://z%s",
}

func (w *originsWalk) name() []byte {
	names := []string{"a.test", "b.test", "c.test", "::1", "10.0.0.1", "x", "http://y", "a.b.test", "b"}
	return []byte(names[w.rng.IntN(len(names))])
}

func (w *originsWalk) pool() Pool { return w.s.Pool(w.rng.Uint32N(4)) }

func (w *originsWalk) origin() (id uint32, key []byte) {
	name := w.name()
	key = fmt.Appendf(nil, originForms[w.rng.IntN(len(originForms))], name)
	if w.rng.IntN(3) == 0 {
		name = append(name, '.')
	}
	if id = w.s.EnsureOrigin(key, name); !bytes.Equal(w.s.Origin(id).Key(), key) {
		w.t.Fatalf("the key of the origin %s is %s", key, w.s.Origin(id).Key())
	}
	return id, key
}

func (w *originsWalk) place() Place {
	p := Place{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(w.rng.IntN(4))})}
	p.Site.Gap = time.Duration(w.rng.IntN(3)) * time.Millisecond
	switch w.rng.IntN(4) {
	case 0:
		p.Group = fmt.Sprint("group", w.rng.IntN(2))
	case 1:
		p.Network = "net"
	}
	return p
}

func (w *originsWalk) offer() {
	if w.s.docs.Len() > 60 {
		return
	}
	o, key := w.origin()
	if w.rng.IntN(5) > 0 {
		w.s.Host(w.s.HostOf(o)).Bind(w.now, w.place())
	}
	w.docs++
	c := Candidate{
		Origin: o, Pool: w.rng.Uint32N(4), ID: fmt.Append(nil, w.docs), URL: append(bytes.Clone(key), "/p"...),
		Priority: w.rng.Int32N(3), OfOrigin: w.rng.IntN(2) == 0, Crawl: []byte([]string{"", "c1", "c2"}[w.rng.IntN(3)]),
	}
	w.s.Offer(w.now, c)
	d := w.s.Doc(w.s.FindDoc(c.ID))
	if got := d.AppendURL(nil); !bytes.Equal(got, c.URL) {
		w.t.Fatalf("the URL of a document is %s; want %s", got, c.URL)
	}
}

func (w *originsWalk) next() {
	sel, _, ok := w.s.Next(w.now)
	if !ok {
		return
	}
	if sel.queue != w.firstOf(sel.Host) || w.s.originOf(sel.queue) != sel.Origin ||
		sel.Doc != w.s.origins.At(sel.queue).queue {
		w.t.Fatalf("Next = %+v; queue %d is first", sel, w.firstOf(sel.Host))
	}
	switch w.rng.IntN(5) {
	case 0:
		w.s.Suspend(w.now, sel)
	case 1:
		w.s.DequeueSelected(w.now, sel)
		w.loose = append(w.loose, sel.Doc)
	case 2:
		w.s.Origin(sel.Origin).SetRobotsPending(w.now, true)
	default:
		w.open = append(w.open, w.s.Send(w.now, sel, 1))
	}
}

// take takes one element out of a slice that is not empty.
func take[T any](rng *rand.Rand, from *[]T) T {
	i := rng.IntN(len(*from))
	one := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return one
}

func (w *originsWalk) done() {
	switch {
	case len(w.open) == 0:
	case w.rng.IntN(3) == 0:
		w.loose = append(w.loose, w.s.Back(w.now, take(w.rng, &w.open)))
	default:
		status := []int{200, 503, 404}[w.rng.IntN(3)]
		w.loose = append(w.loose, w.s.Done(w.now, take(w.rng, &w.open), status, 0))
	}
}

func (w *originsWalk) end() {
	if len(w.loose) > 0 {
		w.s.End(w.now, take(w.rng, &w.loose))
	}
}

func (w *originsWalk) requeue() {
	if len(w.loose) == 0 {
		return
	}
	doc := take(w.rng, &w.loose)
	switch w.rng.IntN(3) {
	case 0:
		w.pool().QueueLast(w.now, doc)
	case 1:
		w.s.Pool(9).Hold(w.now, doc)
	default:
		if w.pool().Requeue(w.now, doc, Blame(w.rng.IntN(3))) {
			w.s.End(w.now, doc)
		}
	}
}

func (w *originsWalk) dequeue() {
	if w.rng.IntN(2) == 0 {
		if doc, _ := w.s.DequeueAny(1 + w.rng.Uint32N(20)); doc != 0 {
			w.loose = append(w.loose, doc)
		}
		return
	}
	doc := w.s.FindDoc(fmt.Append(nil, w.docs-w.rng.IntN(min(w.docs+1, 100))))
	if doc != 0 && !slices.Contains(w.loose, doc) && w.s.Dequeue(doc) {
		w.loose = append(w.loose, doc)
	}
}

func (w *originsWalk) resume() {
	if w.rng.IntN(2) == 0 {
		w.pool().Resume(w.now)
	} else if p := w.pool(); p.Suspended() {
		if sel, ok := p.ResumeFirst(w.now); ok {
			w.open = append(w.open, w.s.Send(w.now, sel, 1))
		}
	}
}

// host returns a known host; 0: there is none.
func (w *originsWalk) host() uint32 { return w.s.FindHost(w.name()) }

// fail gives up a host, and checks that no document of it stays queued.
func (w *originsWalk) fail() {
	host := w.host()
	if host == 0 {
		return
	}
	w.s.Host(host).Fail()
	for doc, of := w.s.NextFailed(); doc != 0; doc, of = w.s.NextFailed() {
		if of != w.s.hostOfDoc(doc) || w.s.hosts.At(of).group != 0 {
			w.t.Fatalf("NextFailed = document %d of host %d, which is of host %d", doc, of, w.s.hostOfDoc(doc))
		}
		w.loose = append(w.loose, doc)
	}
	if queue := w.s.anyQueue(host); queue != 0 && w.s.hosts.At(host).group == 0 {
		w.t.Fatalf("queue %d of a host that was given up has documents", queue)
	}
}

func (w *originsWalk) move() {
	host := w.host()
	if host == 0 || w.s.hosts.At(host).group == 0 {
		return
	}
	to := w.place()
	if w.s.Host(host).Move(w.now, to, w.rng.IntN(2) == 0) && w.rng.IntN(4) > 0 {
		w.s.Host(host).Bind(w.now, to)
	}
	w.s.Movable(w.now)
}

func (w *originsWalk) set() {
	host := w.host()
	if host == 0 {
		return
	}
	h := w.s.Host(host)
	h.Origins(func(o uint32) { w.s.Origin(o).SetRobotsPending(w.now, w.rng.IntN(4) == 0) })
	h.SetCrawlDelay(w.now, time.Duration(w.rng.IntN(2))*time.Second)
	h.SetLimits(w.now, Limits{Gap: time.Duration(w.rng.IntN(3)), Blocked: w.rng.IntN(4) == 0})
	h.Unbind(w.now)
}

func (w *originsWalk) tick() {
	w.now += time.Duration(w.rng.IntN(3)) * 10 * time.Second
	w.s.Tick(w.now)
	w.s.Forgotten(nil)
}

// endAll ends all documents. When the hosts have been forgotten, too, nothing must be left.
func (w *originsWalk) endAll() {
	for len(w.open) > 0 {
		w.loose = append(w.loose, w.s.Done(w.now, take(w.rng, &w.open), 200, 0))
	}
	for w.s.Movable(w.now) != 0 {
	}
	for more := true; more; {
		var doc uint32
		if doc, more = w.s.DequeueAny(10); doc != 0 {
			w.loose = append(w.loose, doc)
		}
	}
	for len(w.loose) > 0 {
		w.end()
	}
	w.s.SetCap(w.now, "net", 0, 0) // so that the network is forgotten, too
	w.s.cfg.Remember = 0
	w.now += 3 * backoffMemory
	for range 1000 {
		w.now += time.Second
		if w.s.Tick(w.now); w.s.hosts.Len()+w.s.groups.Len() == 0 {
			break
		}
	}
	for what, n := range w.s.records() {
		if n != 0 {
			w.t.Fatalf("%d %s are left", n, what)
		}
	}
	w.s.cfg.Remember = 3
	w.s.SetCap(w.now, "net", 0, 4)
}

// records counts what is kept of documents, hosts and groups.
func (s *Slots) records() map[string]int {
	return map[string]int{
		"documents": s.docs.Len(), "IDs": s.docByID.Len(), "bytes of text": s.text.Live(),
		"hosts": s.hosts.Len(), "names": s.hostByName.Len(), "idle hosts": s.sweeper.idleHosts,
		"origins": s.origins.Len(), "other origins": s.otherOrigins.Len(),
		"groups": s.groups.Len(), "groups by ID": len(s.groupByID),
		"names of groups": len(s.named.names), "addresses on networks": len(s.named.addrs),
		"extra gaps": s.pacer.extras.Len(), "limits": s.pacer.limits.Len(), "numbers of limits": len(s.pacer.limitsNos),
		"limits of groups": len(s.pacer.limitCounts), "failures": len(s.pacer.failures),
		"blocks": s.pacer.blocks.Len(), "cooldowns": s.pacer.cooldowns.Len(),
		"changed backoffs": len(s.pacer.backoffs.changed),
		"offering queues":  s.dispatch.offering.copies.Len(), "suspended queues": s.pools.suspensions.Len(),
		"groups to wake": s.dispatch.wakes.Len(), "groups with a line": s.dispatch.caps.Len(),
		"ready groups": s.dispatch.ready.Len(), "own requests": s.dispatch.requests.Len(),
		"hosts with own requests": len(s.dispatch.closed) + len(s.dispatch.waiting),
		"waiting groups":          s.dispatch.slotQueue.Waiting() + s.dispatch.slotQueue.Len(),
		"used slots":              s.table.used + s.table.full, "transactions": s.table.transactions.Len(),
		"leases": s.leases.ends.Len() + s.leases.deferredReleases.Len(), "moves": len(s.moves.pending),
		"counts of crawls": s.crawls.counts.Len() + len(s.crawls.byKey) + len(s.crawls.byName),
		"unresolved":       s.unresolved.docs + s.unresolved.failingDocs + len(s.unresolved.failed),
	}
}

// firstOf returns the queue of a host whose document must go next; 0: none offers one.
func (w *originsWalk) firstOf(host uint32) (best uint32) {
	for id := w.s.hosts.At(host).origins; id != 0; id = w.s.origins.At(id).next {
		o := w.s.origins.At(id)
		if o.queue == 0 || o.closed != 0 {
			continue
		}
		if best == 0 || w.s.dispatch.queues.before(w.s.docs.At(o.queue), w.s.docs.At(w.s.origins.At(best).queue)) {
			best = id
		}
	}
	return best
}

func (w *originsWalk) check() {
	listed, indexed, copies, suspended, limits := 0, 0, 0, 0, map[Limits]uint32{}
	w.s.Hosts(0, 1<<30, func(id uint32) {
		l, i := w.checkOrigins(id)
		c, s := w.checkQueues(id)
		listed, indexed, copies, suspended = listed+l, indexed+i, copies+c, suspended+s
		if l := w.s.Host(id).Limits(); l != (Limits{}) {
			limits[l]++
		}
	})
	if n := w.s.origins.Len(); n != listed {
		w.t.Fatalf("there are %d origins; hosts have %d", n, listed)
	}
	if n := w.s.otherOrigins.Len(); n != indexed {
		w.t.Fatalf("%d origins are in the index; want %d", n, indexed)
	}
	if n := w.s.dispatch.offering.copies.Len(); n != copies {
		w.t.Fatalf("%d offering queues are in heaps; want %d", n, copies)
	}
	if n := w.s.pools.suspensions.Len(); n != suspended {
		w.t.Fatalf("%d queues are suspended; want %d", n, suspended)
	}
	for l, hosts := range limits {
		if at := w.s.pacer.limits.At(w.s.pacer.limitsNos[l]); at.Limits != l || at.hosts != hosts {
			w.t.Fatalf("%d hosts have limits %+v; want %d with %+v", at.hosts, at.Limits, hosts, l)
		}
	}
	if n := w.s.pacer.limits.Len(); n != len(limits) || len(w.s.pacer.limitsNos) != n {
		w.t.Fatalf("%d limits are known, %d by value; want %d", n, len(w.s.pacer.limitsNos), len(limits))
	}
}

// checkOrigins checks the list of a host's origins, and that each is found by its key. It returns
// how many records the list has, and how many of these are in the index.
func (w *originsWalk) checkOrigins(host uint32) (listed, indexed int) {
	s, h := w.s, w.s.hosts.At(host)
	keys, last := map[string]bool{}, uint32(0)
	for id := h.origins; id != 0; id = s.origins.At(id).next {
		listed++
		o := s.origins.At(id)
		if o.pool != 0 {
			if last == 0 || s.originOf(id) != last || o.docs == 0 || o.host != host {
				w.t.Fatalf("pool queue %d (%+v) comes behind origin %d of host %d", id, *o, last, host)
			}
			continue
		}
		last = id
		key := s.originKey(id)
		in := id != h.origins || o.text != h.text
		found := s.otherOrigins.Find(s.hash(key), func(n uint32) bool { return n == id }) == id
		if in != found || keys[string(key)] || o.host != host || s.findOrigin(host, key) != id {
			w.t.Fatalf("origin %s of host %d is number %d; in the index: %v, want %v", key, o.host, id, found, in)
		}
		if keys[string(key)] = true; in {
			indexed++
		}
	}
	return listed, indexed
}

// checkQueues checks which queue of a host is first and that the others that offer a document are
// in its heap. It returns how many of these there are, and how many of its queues are suspended.
func (w *originsWalk) checkQueues(host uint32) (others, suspended int) {
	s, h := w.s, w.s.hosts.At(host)
	if want := w.firstOf(host); h.first != want {
		w.t.Fatalf("queue %d of host %d is first; want %d", h.first, host, want)
	}
	for id := h.origins; id != 0; id = s.origins.At(id).next {
		if s.origins.At(id).queue != 0 && id < s.dispatch.anyFrom {
			w.t.Fatalf("queue %d has a document; DequeueAny looks from %d on", id, s.dispatch.anyFrom)
		}
		switch o := s.origins.At(id); {
		case o.closed&forSpider != 0:
			if suspended++; s.pools.suspensions.At(o.place).queue != id {
				w.t.Fatalf("the suspension of queue %d is of %d", id, s.pools.suspensions.At(o.place).queue)
			}
		case id == h.first:
		case o.offers():
			others++
			c, d := s.dispatch.offering.copies.At(o.place), s.docs.At(o.queue)
			if c.origin != id || c.priority != d.priority || c.arrival() != d.arrival() || c.parent == notQueued {
				w.t.Fatalf("queue %d has the copy %+v of document %+v", id, *c, *d)
			}
		case o.place != 0:
			w.t.Fatalf("queue %d offers nothing, and has place %d", id, o.place)
		}
	}
	w.most = max(w.most, others+1)
	return others, suspended
}

// TestOriginsWalk compares a host's origins and pool queues with what is found by looking at all.
func TestOriginsWalk(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			cfg := benchConfig(6)
			cfg.Remember, cfg.CountDocs = 3, true
			w := &originsWalk{t: t, rng: rand.New(rand.NewPCG(seed, 9)), s: New(cfg), now: time.Second}
			w.s.SetCap(0, "net", 0, 4)
			events := []func(){
				w.offer, w.offer, w.offer, w.offer, w.next, w.next, w.next, w.done, w.done, w.end, w.end, w.end,
				w.requeue, w.dequeue, w.resume, w.fail, w.move, w.set, w.tick, w.tick,
			}
			for step := range 8000 {
				if step%500 == 499 {
					w.endAll()
				}
				events[w.rng.IntN(len(events))]()
				w.check()
			}
			if w.most < 5 {
				t.Errorf("at most %d queues of a host offered documents at a time; want 5 or more", w.most)
			}
		})
	}
}
