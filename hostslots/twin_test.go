package hostslots

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// twin is a naive model of Slots. It keeps lists, looks at everything each time, and knows the
// rules but not the structures. It models what may be sent; which of several groups that are due is
// next, Slots decides.
type twin struct {
	cfg       Config
	docs      map[string]*twinDoc
	queue     map[string][]*twinDoc // by host, in order of arrival
	hosts     map[string]*twinHost
	groups    map[string]*twinGroup
	open      map[TransID]*twinDoc
	suspended []twinPoolQueue // longest first
	seq       int
}

// twinPoolQueue is the documents of an origin for a spider pool.
type twinPoolQueue struct {
	origin string
	pool   uint32
}

type twinDoc struct {
	id, host, origin string
	priority         int32
	pool             uint32
	crawl            string
	seq, attempts    int
	sent, status     time.Duration
	spider           uint32
	inFlight         bool
}

type twinHost struct {
	group       string
	blocked     time.Duration
	delay       time.Duration
	held        map[string]bool // origins
	limits      Limits
	lastRequest time.Duration // last request to groups that it was in
	moving      bool
	to          string // the group that it goes to, while it is moving
}

type twinGroup struct {
	last, notBefore, backoff time.Duration
	active                   int
	slot                     uint32 // plus one; 0: none
	since                    time.Duration
	sent                     int // documents, since it has that slot
}

func newTwin(cfg Config) *twin {
	return &twin{
		cfg: cfg, docs: map[string]*twinDoc{}, queue: map[string][]*twinDoc{}, hosts: map[string]*twinHost{},
		groups: map[string]*twinGroup{}, open: map[TransID]*twinDoc{},
	}
}

func (w *twin) host(name string) *twinHost {
	if w.hosts[name] == nil {
		w.hosts[name] = &twinHost{held: map[string]bool{}}
	}
	return w.hosts[name]
}

// base returns the longest Crawl-delay or gap of the group's hosts.
func (w *twin) base(group string) (gap time.Duration) {
	for _, h := range w.hosts {
		if h.group == group {
			gap = max(gap, h.delay, w.gap(h))
		}
	}
	return gap
}

func (w *twin) gap(h *twinHost) time.Duration {
	if h.limits.Gap > 0 {
		return h.limits.Gap
	}
	return w.cfg.Gap
}

// most returns the least number of open requests that a host of the group allows.
func (w *twin) most(group string) int {
	most := 1000
	for _, h := range w.hosts {
		switch {
		case h.group != group:
		case h.limits.Concurrent > 0:
			most = min(most, h.limits.Concurrent)
		default:
			most = min(most, w.cfg.Concurrent)
		}
	}
	return most
}

func (w *twin) due(group string) time.Duration {
	g := w.groups[group]
	return max(g.last+max(w.base(group), g.backoff), g.notBefore)
}

// awaitsHosts reports whether a host with open requests is to join the group.
func (w *twin) awaitsHosts(group string) bool {
	for _, h := range w.hosts {
		if h.moving && h.to == group {
			return true
		}
	}
	return false
}

// first returns the document of a host that must go next; nil: none may.
func (w *twin) first(name string) *twinDoc {
	h := w.hosts[name]
	if h.blocked != 0 || h.limits.Blocked || h.moving {
		return nil
	}
	var best *twinDoc
	for _, d := range w.queue[name] {
		if d.inFlight || h.held[d.origin] || slices.Contains(w.suspended, d.poolQueue()) {
			continue
		}
		if best == nil || d.priority > best.priority || d.priority == best.priority && d.seq < best.seq {
			best = d
		}
	}
	return best
}

func (d *twinDoc) poolQueue() twinPoolQueue { return twinPoolQueue{d.origin, d.pool} }

// mayAsk returns the groups with a slot that a document may be sent to now.
func (w *twin) mayAsk(now time.Duration, slotted func(string) bool) map[string]time.Duration {
	may := map[string]time.Duration{}
	for name, h := range w.hosts {
		if h.group == "" || !slotted(h.group) || w.first(name) == nil {
			continue
		}
		if due := w.due(h.group); due <= now && w.groups[h.group].active < w.most(h.group) && !w.awaitsHosts(h.group) {
			may[h.group] = due
		}
	}
	return may
}

// run drives Slots and twin by the same random events.
type run struct {
	t      *testing.T
	rng    *rand.Rand
	s      *Slots
	w      *twin
	now    time.Duration
	nextID int
	ended  []TransID
}

func (r *run) hostName() string { return fmt.Sprintf("h%d.example", r.rng.IntN(40)) }

func (r *run) slotted(group string) bool {
	return r.slotOf(group) != 0
}

func (r *run) slotOf(group string) uint32 {
	id, ok := r.s.groupByID[netip.MustParseAddr(group).As16()]
	if !ok {
		return 0
	}
	return r.s.groups.At(id).slot
}

// checkQuotas checks that no group that has used its quota keeps its slot while another could use
// it.
func (r *run) checkQuotas() {
	used := ""
	for name, g := range r.w.groups {
		slot, since := r.slotOf(name), time.Duration(0)
		if slot != 0 {
			since = r.s.table.slots[slot-1].since // it may have lost its slot, and got the same one again
		}
		if slot != g.slot || since != g.since {
			g.slot, g.since, g.sent = slot, since, 0
		}
		if g.slot != 0 && g.active == 0 && g.sent >= r.w.cfg.Len {
			used = name
		}
	}
	for name, h := range r.w.hosts {
		if used != "" && h.group != "" && !r.slotted(h.group) && r.w.first(name) != nil &&
			r.w.due(h.group) <= r.now && !r.w.awaitsHosts(h.group) {
			r.t.Fatalf("%s has a slot for %d documents; %s of %s waits",
				used, r.w.groups[used].sent, name, h.group)
		}
	}
}

func (r *run) offer() {
	name := r.hostName()
	origin := fmt.Sprintf("%s://%s", []string{"http", "https"}[r.rng.IntN(2)], name)
	o := r.s.EnsureOrigin([]byte(origin), []byte(name))
	id := r.s.HostOf(o)
	if !r.s.Host(id).Settled() {
		addr := fmt.Sprintf("10.0.0.%d", 1+r.rng.IntN(12))
		r.move(name, addr)
		r.s.Host(id).Bind(r.now, netip.MustParseAddr(addr))
	}
	doc := fmt.Sprintf("%d", r.nextID)
	if r.rng.IntN(10) == 0 && r.nextID > 0 {
		doc = fmt.Sprintf("%d", r.rng.IntN(r.nextID))
	}
	r.nextID++
	priority := int32(r.rng.IntN(3))
	pool := uint32(r.rng.IntN(3))
	crawl := []string{"", "", "one", "two", strings.Repeat("x", maxCrawlName+1)}[r.nextID*r.nextID%23%5]
	took := r.s.Offer(r.now, Candidate{
		Origin: o, Pool: pool, Crawl: []byte(crawl), ID: []byte(doc), URL: []byte(origin + "/" + doc),
		Priority: priority,
	})
	if held := r.w.docs[doc] != nil; took == held {
		r.t.Fatalf("Offer(%s) = %v, held %v", doc, took, held)
	}
	if took {
		r.w.seq++
		d := &twinDoc{id: doc, host: name, origin: origin, priority: priority, pool: pool, crawl: crawl, seq: r.w.seq}
		r.w.docs[doc] = d
		r.w.queue[name] = append(r.w.queue[name], d)
	}
}

// move binds a host that is not settled in the twin. The host carries its times along.
func (r *run) move(name, addr string) {
	h := r.w.host(name)
	if r.w.groups[addr] == nil {
		r.w.groups[addr] = &twinGroup{}
	}
	if h.group != "" && h.group != addr {
		r.w.groups[addr].notBefore = max(r.w.groups[addr].notBefore, r.w.due(h.group))
		h.lastRequest = max(h.lastRequest, r.w.groups[h.group].last)
	}
	h.group = addr
	r.inherit(h)
}

// inherit makes the group of a host wait for as long as the host must.
func (r *run) inherit(h *twinHost) {
	if h.lastRequest > 0 {
		g := r.w.groups[h.group]
		g.notBefore = max(g.notBefore, h.lastRequest+r.w.gap(h))
	}
}

// setLimits changes the limits of a host.
func (r *run) setLimits() {
	name := r.hostName()
	id, h := r.s.FindHost([]byte(name)), r.w.host(name)
	if id == 0 || h.group == "" {
		return
	}
	h.limits = r.limits()
	r.s.Host(id).SetLimits(r.now, h.limits)
	r.inherit(h)
}

func (r *run) limits() Limits {
	return Limits{
		Gap:        []time.Duration{0, 0, 300 * time.Millisecond, 3 * time.Second}[r.rng.IntN(4)],
		Concurrent: []int{0, 0, 1, r.w.cfg.MaxConcurrent}[r.rng.IntN(4)],
		Blocked:    r.rng.IntN(6) == 0,
	}
}

// regroup moves a host with its documents, or cancels a move.
func (r *run) regroup() {
	name := r.hostName()
	id, h := r.s.FindHost([]byte(name)), r.w.host(name)
	switch {
	case id == 0 || h.group == "":
	case h.moving && r.rng.IntN(3) == 0:
		h.moving = false
		r.s.Host(id).CancelMove(r.now)
	default:
		r.moveNow(id, name)
	}
}

func (r *run) isOpen(name string) bool {
	return slices.ContainsFunc(r.w.queue[name], func(d *twinDoc) bool { return d.inFlight })
}

func (r *run) moveNow(id uint32, name string) {
	to, limits, h := fmt.Sprintf("10.0.0.%d", 1+r.rng.IntN(12)), r.limits(), r.w.host(name)
	addr := netip.MustParseAddr(to)
	key := GroupIDOf("", addr.As16())
	_, known := r.s.groupByID[key]
	open := r.isOpen(name)
	if moved := r.s.Host(id).Move(r.now, key, limits, false); moved == open {
		r.t.Fatalf("Move(%s) = %v; a request is open: %v", name, moved, open)
	}
	if h.moving, h.to = open, to; open {
		return
	}
	due := r.w.due(h.group)
	h.lastRequest, h.limits = max(h.lastRequest, r.w.groups[h.group].last), limits
	if r.w.groups[to] == nil {
		r.w.groups[to] = &twinGroup{}
	}
	g := r.w.groups[to]
	g.notBefore = max(g.notBefore, due)
	if known || len(r.w.queue[name]) > 0 || max(due, h.lastRequest+r.w.gap(h)) > r.now {
		g.last = max(g.last, h.lastRequest)
	}
	h.group = to
	r.inherit(h)
	r.s.Host(id).Bind(r.now, addr)
}

// settle moves the hosts that can leave their groups now.
func (r *run) settle() {
	for id := r.s.Movable(r.now); id != 0; id = r.s.Movable(r.now) {
		name := string(r.s.Host(id).Name())
		if !r.w.host(name).moving {
			r.t.Fatalf("%s can be moved, and nobody wanted that", name)
		}
		r.moveNow(id, name)
	}
	for name, h := range r.w.hosts {
		if h.moving && !r.isOpen(name) {
			r.t.Fatalf("%s can be moved, and Movable does not name it", name)
		}
	}
}

func (r *run) send() {
	r.settle()
	t, wait, ok := r.s.Next(r.now)
	may := r.w.mayAsk(r.now, r.slotted)
	if ok != (len(may) > 0) {
		r.t.Fatalf("Next = %v (wait %v), but may ask %v", ok, wait, may)
	}
	if !ok {
		return
	}
	group, name := r.s.Host(t.Host).Addr().String(), string(r.s.Host(t.Host).Name())
	if due, allowed := may[group]; !allowed || due > r.now || t.Due > r.now {
		r.t.Fatalf("Next chose %s, due %v; of %v", group, t.Due, may)
	}
	want := r.w.first(name)
	if got := r.s.Doc(t.Doc); want == nil || string(got.ID) != want.id || got.Attempts != want.attempts ||
		t.Pool != want.pool || string(r.s.OriginKey(t.Origin)) != want.origin {
		r.t.Fatalf("Next of %s = %s (attempts %d, for pool %d), want %+v",
			name, got.ID, got.Attempts, t.Pool, want)
	}
	if r.rng.IntN(4) == 0 {
		r.s.Suspend(r.now, t)
		r.w.suspended = append(r.w.suspended, want.poolQueue())
		return
	}
	spider := uint32(1 + r.rng.IntN(3))
	trans := r.s.Send(r.now, t, spider)
	if r.w.open[trans] != nil {
		r.t.Fatalf("transaction %v is open already", trans)
	}
	want.attempts++
	want.inFlight, want.sent, want.status, want.spider = true, r.now, r.now, spider
	r.w.open[trans] = want
	g := r.w.groups[group]
	g.last = r.now
	g.active++
	g.sent++
}

func (r *run) anyOpen() (TransID, bool) {
	keys := make([]TransID, 0, len(r.w.open))
	for k := range r.w.open {
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return TransID{}, false
	}
	slices.SortFunc(keys, func(a, b TransID) int { return r.w.open[a].seq - r.w.open[b].seq })
	return keys[r.rng.IntN(len(keys))], true
}

func (r *run) done() {
	trans, ok := r.anyOpen()
	if !ok {
		return
	}
	d := r.w.open[trans]
	if v, tx := r.s.Lookup(trans); v != Live || tx.Spider != d.spider {
		r.t.Fatalf("Lookup(%v) = %v at %d, want live at %d", trans, v, tx.Spider, d.spider)
	}
	status := []int{200, 404, 429, 503, 0}[r.rng.IntN(5)]
	retry := time.Duration(r.rng.IntN(2)) * 3 * time.Second
	n := r.s.Done(r.now, trans, status, retry)
	if got := string(r.s.Doc(n).ID); got != d.id {
		r.t.Fatalf("Done(%v) = document %s, want %s", trans, got, d.id)
	}
	r.learn(d, status, retry)
	r.drop(trans, d)
	r.s.End(r.now, n)
	r.forget(d)
}

func (r *run) learn(d *twinDoc, status int, retry time.Duration) {
	group := r.w.hosts[d.host].group
	g, base := r.w.groups[group], r.w.base(group)
	switch {
	case status == 429 || status == 503:
		g.backoff = max(min(2*max(base, g.backoff), 64*base), retry, g.backoff)
		g.notBefore = max(g.notBefore, r.now+retry)
	case status == 200:
		if g.backoff /= 2; g.backoff <= base {
			g.backoff = 0
		}
	}
}

// drop ends a transaction in the twin.
func (r *run) drop(trans TransID, d *twinDoc) {
	delete(r.w.open, trans)
	r.ended = append(r.ended, trans)
	d.inFlight = false
	r.w.groups[r.w.hosts[d.host].group].active--
}

// forget ends a document. A queue without documents is not suspended.
func (r *run) forget(d *twinDoc) {
	delete(r.w.docs, d.id)
	r.w.queue[d.host] = slices.DeleteFunc(r.w.queue[d.host], func(x *twinDoc) bool { return x == d })
	r.emptied(d.host, d.poolQueue())
}

// emptied resumes a queue that has no documents left.
func (r *run) emptied(host string, queue twinPoolQueue) {
	if !slices.ContainsFunc(r.w.queue[host], func(x *twinDoc) bool { return x.poolQueue() == queue }) {
		r.w.suspended = slices.DeleteFunc(r.w.suspended, func(l twinPoolQueue) bool { return l == queue })
	}
}

// resume resumes the queue of some pool that was suspended first.
func (r *run) resume() {
	pool := uint32(r.rng.IntN(3))
	i := slices.IndexFunc(r.w.suspended, func(l twinPoolQueue) bool { return l.pool == pool })
	if suspended := r.s.Pool(pool).Suspended(); suspended != (i >= 0) || r.s.Pool(pool).Resume(r.now) != suspended {
		r.t.Fatalf("Suspended() of pool %d = %v; the twin has %v", pool, suspended, r.w.suspended)
	}
	if i >= 0 {
		r.w.suspended = slices.Delete(r.w.suspended, i, i+1)
	}
}

// resumeFirst does so, too, and checks whether its first document may be sent.
func (r *run) resumeFirst() {
	pool := uint32(r.rng.IntN(3))
	i := slices.IndexFunc(r.w.suspended, func(l twinPoolQueue) bool { return l.pool == pool })
	if i < 0 {
		return
	}
	queue := r.w.suspended[i]
	r.w.suspended = slices.Delete(r.w.suspended, i, i+1)
	doc := r.s.Pool(pool).FirstSuspended()
	turn, ok := r.s.Pool(pool).ResumeFirst(r.now)
	_, name, _ := strings.Cut(queue.origin, "://")
	h := r.w.hosts[name]
	_, may := r.w.mayAsk(r.now, r.slotted)[h.group]
	closed := h.blocked != 0 || h.limits.Blocked || h.moving || h.held[queue.origin]
	queued := slices.ContainsFunc(r.w.queue[name], func(d *twinDoc) bool {
		return d.poolQueue() == queue &&
			!d.inFlight
	})
	if ok != (may && !closed && queued) || queued != (doc != 0) {
		r.t.Fatalf("ResumeFirst of pool %d, of %v = %v; its group may be asked %v, closed %v, queued %v (first %d)",
			pool, queue, ok, may, closed, queued, doc)
	}
	if ok && (turn.Doc != doc || turn.Pool != pool || string(r.s.OriginKey(turn.Origin)) != queue.origin) {
		r.t.Fatalf("ResumeFirst of pool %d, of %v = %+v; want document %d", pool, queue, turn, doc)
	}
}

// lose takes back all documents of a spider, and checks that they were its.
func (r *run) lose(spider uint32) {
	for {
		n, how := r.s.Lost(r.now, spider)
		if n == 0 {
			break
		}
		overdue := how != InTime
		id := string(r.s.Doc(n).ID)
		d := r.w.docs[id]
		if d == nil || !d.inFlight || d.spider != spider || overdue != r.overdue(d) {
			r.t.Fatalf("document %s came back, overdue %v: %+v", id, overdue, d)
		}
		for trans, open := range r.w.open {
			if open == d {
				r.drop(trans, d)
			}
		}
		r.requeue(n, d)
	}
	for trans, d := range r.w.open {
		if d.spider == spider {
			r.t.Fatalf("%v is still with spider %d, which is lost", trans, spider)
		}
	}
}

// requeue queues a document again, or ends it.
func (r *run) requeue(n uint32, d *twinDoc) {
	blame, pool, over := Blame(r.rng.IntN(3)), uint32(r.rng.IntN(3)), false
	switch {
	case blame == None:
		d.attempts--
	case blame == Shared:
		d.attempts = min(d.attempts, r.w.cfg.MaxAttempts-1)
	default:
		over = d.attempts >= r.w.cfg.MaxAttempts
	}
	if got := r.s.Requeue(r.now, n, pool, blame); got != over {
		r.t.Fatalf("document %s after %d attempts, blame %d: over = %v", d.id, d.attempts, blame, got)
	}
	if over {
		r.s.End(r.now, n)
		r.forget(d)
		return
	}
	from := d.poolQueue()
	d.pool = pool
	r.emptied(d.host, from)
}

func (r *run) overdue(d *twinDoc) bool {
	return r.now-d.status >= r.w.cfg.StatusTimeout || r.now-d.sent >= r.w.cfg.MaxFetch
}

func (r *run) expire() {
	for spider, _ := r.s.Overdue(r.now); spider != 0; spider, _ = r.s.Overdue(r.now) {
		any := false
		for _, d := range r.w.open {
			any = any || d.spider == spider && r.overdue(d)
		}
		if !any {
			r.t.Fatalf("spider %d has nothing that is overdue", spider)
		}
		r.lose(spider)
	}
	for trans, d := range r.w.open {
		if r.overdue(d) {
			r.t.Fatalf("%v, sent at %v, has been silent since %v and is still open", trans, d.sent, d.status)
		}
	}
}

func (r *run) working() {
	if trans, ok := r.anyOpen(); ok {
		r.s.Working(r.now, trans)
		r.w.open[trans].status = r.now
	}
	if len(r.ended) > 0 {
		old := r.ended[r.rng.IntN(len(r.ended))]
		if v, _ := r.s.Lookup(old); r.w.open[old] == nil && v != Stale {
			r.t.Fatalf("Lookup(%v), which has ended, = %v", old, v)
		}
	}
}

// purge takes some document out of its queue.
func (r *run) purge() {
	if r.nextID == 0 {
		return
	}
	id := fmt.Sprintf("%d", r.rng.IntN(r.nextID))
	n, d := r.s.FindDoc([]byte(id)), r.w.docs[id]
	if (n != 0) != (d != nil) {
		r.t.Fatalf("FindDoc(%s) = %d; the twin has %v", id, n, d)
	}
	if d == nil {
		return
	}
	if out := r.s.Dequeue(n); out == d.inFlight {
		r.t.Fatalf("Dequeue(%s) = %v; at a spider: %v", id, out, d.inFlight)
	} else if out {
		r.s.End(r.now, n)
		r.forget(d)
	}
}

func (r *run) steer() {
	name := r.hostName()
	id := r.s.FindHost([]byte(name))
	if id == 0 {
		return
	}
	h := r.w.host(name)
	switch r.rng.IntN(4) {
	case 0:
		h.delay = time.Duration(r.rng.IntN(3)) * 2 * time.Second
		r.s.Host(id).SetCrawlDelay(r.now, h.delay)
	case 1:
		until := r.now + time.Duration(r.rng.IntN(20)-5)*time.Second
		r.s.Host(id).Block(r.now, until)
		if h.blocked = until; until <= r.now {
			h.blocked = 0
		}
	default:
		r.s.Host(id).Origins(func(o uint32) {
			held := r.rng.IntN(3) == 0
			r.s.SetRobotsPending(r.now, o, held)
			h.held[string(r.s.OriginKey(o))] = held
		})

	}
}

func (r *run) tick() {
	r.now += time.Duration(r.rng.IntN(1500)) * time.Millisecond
	for _, h := range r.w.hosts {
		if h.blocked != 0 && h.blocked <= r.now {
			h.blocked = 0
		}
	}
	r.s.Tick(r.now)
	r.expire()
}

func (r *run) check() {
	c := r.s.Counts()
	if c.Held != len(r.w.docs) || c.InFlight != len(r.w.open) {
		r.t.Fatalf("Counts = %+v, want %d held, %d in flight", c, len(r.w.docs), len(r.w.open))
	}
	for next, more := uint32(0), true; more; more = next != 0 {
		next = r.s.InFlight(next, 3, r.now, func(doc uint32) {
			if id := string(r.s.Doc(doc).ID); r.w.docs[id] == nil || !r.w.docs[id].inFlight {
				r.t.Fatalf("document %s is not at a spider", id)
			}
			c.InFlight--
		})
	}
	for pool := range uint32(3) {
		held := false
		for _, d := range r.w.docs {
			held = held || d.pool == pool && pool > 0
		}
		if r.s.Pool(pool).HasDocs() != held {
			r.t.Fatalf("HasDocs() of pool %d = %v, want %v", pool, !held, held)
		}
	}
	if c.InFlight != 0 {
		r.t.Fatalf("%d documents at spiders are not told", c.InFlight)
	}
	r.checkQuotas()
	byGroup, used, full, left := map[string]int{}, 0, 0, 0
	for _, d := range r.w.docs {
		byGroup[r.w.hosts[d.host].group]++
	}
	for group, n := range byGroup {
		room := 0
		if r.slotted(group) {
			used++
			room = r.w.cfg.Len
			if n >= room {
				full++
			}
		}
		left += max(0, n-room)
	}
	if c.Used != used || c.Full != full || c.Leftover != left || used < min(len(byGroup), c.Slots) {
		r.t.Fatalf("Counts = %+v, want %d used, %d full, %d left over, of %d groups",
			c, used, full, left, len(byGroup))
	}
}

// checkCrawls compares the counts of crawls, and checks that none is left of crawls that ended.
func (r *run) checkCrawls() {
	counts, names := map[countKey]bool{}, map[string]bool{}
	want := map[string]map[string]int{} // by group and crawl
	for _, d := range r.w.docs {
		if d.crawl == "" || len(d.crawl) > maxCrawlName {
			continue
		}
		group := r.w.hosts[d.host].group
		if want[group] == nil {
			want[group] = map[string]int{}
		}
		want[group][d.crawl]++
		no := r.s.crawls.byName[d.crawl]
		names[d.crawl] = true
		for _, crawl := range []uint16{no, 0} { // 0: the list of all
			counts[hostCount(r.s.FindHost([]byte(d.host)), crawl)] = true
			counts[groupCount(r.s.groupByID[netip.MustParseAddr(group).As16()], crawl)] = true
		}
	}
	for addr, id := range r.s.groupByID {
		got, name := map[string]int{}, netip.AddrFrom16(addr).Unmap().String()
		r.s.Group(id).Crawls(10, func(crawl string, docs int) { got[crawl] += docs })
		if !maps.Equal(got, want[name]) {
			r.t.Fatalf("documents of %s by crawl are %v, want %v", name, got, want[name])
		}
	}
	if len(r.s.crawls.byKey) != len(counts) || len(r.s.crawls.byName) != len(names) {
		r.t.Fatalf("there are %d counts of %d crawls, want %d of %d",
			len(r.s.crawls.byKey), len(r.s.crawls.byName), len(counts), len(names))
	}
}

func TestSlotsAgainstTwin(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			cfg := Config{
				Count: 1 + int(seed%7), Len: 1 + int(seed%5)*2, Concurrent: 1 + int(seed%3), Gap: time.Second,
				StatusTimeout: 9 * time.Second, MaxFetch: 20 * time.Second, MaxAttempts: 3,
				Patience: 4 * time.Second, RejectOver: 9, Remember: 1000, Generation: ^uint32(0) - 5, CountDocs: true,
			}
			cfg.Concurrent = min(cfg.Concurrent, cfg.Len)
			cfg.MaxConcurrent = cfg.Concurrent + int(seed%4)
			r := &run{t: t, rng: rand.New(rand.NewPCG(seed, 9)), s: New(cfg), w: newTwin(cfg)}
			events := []func(){r.offer, r.offer, r.offer, r.send, r.send, r.send, r.done, r.done,
				r.tick, r.working, r.steer, r.purge, r.resume, r.resumeFirst}
			if seed%2 == 1 {
				events = append(events, r.setLimits, r.regroup)
			}

			for step := range 4000 {
				if step%100 == 99 {
					r.lose(uint32(1 + r.rng.IntN(3)))
				}
				events[r.rng.IntN(len(events))]()
				r.check()
				if step%10 == 0 {
					r.checkCrawls()
				}
			}
		})
	}
}
