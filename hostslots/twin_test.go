package hostslots

import (
	"fmt"
	"maps"
	"math"
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
	networks  map[string]AddressLimits
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
	twinPace        // of its site, unless that is its group
	place    Place  // Addr is invalid: it has no group
	group    string // "": none
	above    string // address or network above its site group; "": none
	blocked  time.Duration
	delay    time.Duration
	held     map[string]bool // origins
	limits   Limits
	open     int
	wasSite  bool
	moving   bool
	to       string // the group that it goes to, while it is moving
	toAbove  string // what is above that, if its open requests do not count there yet
}

type twinPace struct{ last, notBefore, backoff time.Duration }

func (p *twinPace) merge(with twinPace) {
	p.last, p.notBefore = max(p.last, with.last), max(p.notBefore, with.notBefore)
	p.backoff = max(p.backoff, with.backoff)
}

func (p *twinPace) learn(base time.Duration, status int, atLeast time.Duration) {
	switch {
	case status == 429 || status == 503:
		p.backoff = max(min(2*max(base, p.backoff), 64*base), atLeast, p.backoff)
	case status == 200:
		if p.backoff /= 2; p.backoff <= base {
			p.backoff = 0
		}
	}
}

// twinGroup is a group, an address above site groups, or a shared network.
type twinGroup struct {
	twinPace
	address  AddressLimits
	active   int
	failures map[string]time.Duration // the last one of each site
	success  time.Duration
	slot     uint32 // plus one; 0: none
	since    time.Duration
	sent     int // documents, since it has that slot
}

func newTwin(cfg Config) *twin {
	return &twin{
		cfg: cfg, docs: map[string]*twinDoc{}, queue: map[string][]*twinDoc{}, hosts: map[string]*twinHost{},
		groups: map[string]*twinGroup{}, open: map[TransID]*twinDoc{}, networks: map[string]AddressLimits{},
	}
}

func (w *twin) group(name string) *twinGroup {
	if w.groups[name] == nil {
		w.groups[name] = &twinGroup{failures: map[string]time.Duration{}}
	}
	return w.groups[name]
}

func isAddress(group string) bool {
	_, err := netip.ParseAddr(group)
	return err == nil
}

func (w *twin) host(name string) *twinHost {
	if w.hosts[name] == nil {
		w.hosts[name] = &twinHost{held: map[string]bool{}}
	}
	return w.hosts[name]
}

// gap returns the ordinary gap of an address, a network or a site group.
func (w *twin) gap(group string) (gap time.Duration) {
	if l, network := w.networks[group]; network {
		return l.Gap
	}
	if g := w.groups[group]; isAddress(group) && g.address.Gap > 0 {
		return g.address.Gap
	}
	for _, h := range w.hosts {
		switch {
		case h.group != group && (h.above != group || !isAddress(group)):
		case isAddress(group) && h.limits.Raises && h.limits.Gap > 0:
			gap = max(gap, min(w.cfg.Gap, h.limits.Gap))
		case isAddress(group):
			gap = w.cfg.Gap
		default:
			gap = max(gap, w.siteGap(h))
		}
	}
	if gap == 0 { // it has no hosts
		return w.cfg.Gap
	}
	return gap
}

func (w *twin) siteGap(h *twinHost) time.Duration {
	if h.limits.Gap > 0 {
		return h.limits.Gap
	}
	return w.cfg.SiteGap
}

func (w *twin) siteMost(h *twinHost) int {
	if h.limits.Concurrent > 0 {
		return h.limits.Concurrent
	}
	return w.cfg.SiteConcurrent
}

// most returns how many requests to an address, a network or a site group may be open.
func (w *twin) most(group string) int {
	if l, network := w.networks[group]; network {
		return l.Concurrent
	}
	if g := w.groups[group]; isAddress(group) && g.address.Concurrent > 0 {
		return min(g.address.Concurrent, w.cfg.MaxConcurrent)
	}
	most, any := 1000, false
	for _, h := range w.hosts {
		if h.group != group && (h.above != group || !isAddress(group)) {
			continue
		}
		any = true
		if !isAddress(group) {
			most = min(most, w.siteMost(h))
		} else if h.limits.Raises && h.limits.Concurrent > 0 {
			most = min(most, max(w.cfg.Concurrent, h.limits.Concurrent))
		} else {
			most = min(most, w.cfg.Concurrent)
		}
	}
	if !any {
		most = w.cfg.Concurrent
	}
	return min(most, w.cfg.MaxConcurrent)
}

// delay returns the longest Crawl-delay of a site group.
func (w *twin) delay(group string) (delay time.Duration) {
	for _, h := range w.hosts {
		if h.group == group && !isAddress(group) {
			delay = max(delay, h.delay)
		}
	}
	return delay
}

func (w *twin) base(group string) time.Duration { return max(w.gap(group), w.delay(group)) }

func (w *twin) due(group string) time.Duration {
	g := w.groups[group]
	return max(g.last+max(w.base(group), g.backoff), g.notBefore)
}

// siteOf returns the pace of a host's site and its gap without backing off.
func (w *twin) siteOf(h *twinHost) (of *twinPace, base time.Duration) {
	if h.group != "" && !isAddress(h.group) {
		return &w.groups[h.group].twinPace, w.base(h.group)
	}
	return &h.twinPace, max(w.siteGap(h), h.delay)
}

// free reports whether an address, a network or a site group may be asked now.
func (w *twin) free(now time.Duration, group string) bool {
	return w.due(group) <= now && w.active(group) < w.most(group) && !w.awaitsHosts(group)
}

// active returns the open requests that count for a group: those to hosts that go there, too.
func (w *twin) active(group string) (n int) {
	for _, h := range w.hosts {
		if h.moving && h.toAbove == group {
			n += h.open
		}
	}
	return n + w.groups[group].active
}

// mayGo reports whether a host may be asked now, at all levels.
func (w *twin) mayGo(now time.Duration, h *twinHost) bool {
	if isAddress(h.group) {
		of, base := w.siteOf(h)
		if max(of.last+max(base, of.backoff), of.notBefore) > now || h.open >= w.siteMost(h) {
			return false
		}
	}
	return w.free(now, h.group) && (h.above == "" || w.free(now, h.above))
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

// mayAsk returns the groups with a slot that a document may be sent to now. lines reports whether
// all of them are groups that may have to wait in line for what is above them, or are above others.
func (w *twin) mayAsk(now time.Duration, slotted func(string) bool) (may map[string]time.Duration, lines bool) {
	may, lines = map[string]time.Duration{}, true
	for name, h := range w.hosts {
		if h.group == "" || !slotted(h.group) || w.first(name) == nil || !w.mayGo(now, h) {
			continue
		}
		may[h.group] = w.due(h.group)
		lines = lines && (h.above != "" || w.isAbove(h.group))
	}
	return may, lines
}

func (w *twin) isAbove(group string) bool {
	for _, h := range w.hosts {
		if h.above == group {
			return true
		}
	}
	return false
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
	lines  time.Duration // since when only what may wait in line could be sent, and was not; 0: it is not so
	places bool          // there are rules' groups and shared networks
}

func (r *run) hostName() string { return fmt.Sprintf("h%d.example", r.rng.IntN(40)) }

func (r *run) slotted(group string) bool {
	return r.slotOf(group) != 0
}

func (r *run) slotOf(group string) uint32 {
	id, ok := r.s.groupByID[idOf(group)]
	if !ok {
		return 0
	}
	return r.s.groups.At(id).slot
}

func idOf(group string) GroupID {
	if addr, err := netip.ParseAddr(group); err == nil {
		return addr.As16()
	}
	return nameID(group)
}

// place returns a place that a host may be at.
func (r *run) place(name string) Place {
	p := Place{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + r.rng.IntN(12))})}
	if !r.places {
		return p
	}
	p.Site = r.limits()
	switch last := p.Addr.As4()[3]; {
	case last > 9: // on a shared network
		p.Network = fmt.Sprintf("net%d", last%2)
	case name < "h2": // in a rule's group
		p.Group = "group" + name[:2]
	}
	if last := p.Addr.As4()[3]; last < 4 { // what a rule says of it
		p.Address = AddressLimits{Gap: 100 * time.Millisecond * time.Duration(last), Concurrent: int(last)}
	}
	return p
}

// groupsOf returns the group of a host at a place, and what is above that.
func groupsOf(name string, p Place) (group, above string) {
	switch {
	case p.Group == "" && p.Network == "":
		return p.Addr.String(), ""
	case p.Network == "":
		return p.Group, p.Addr.String()
	case p.Group == "":
		return "site " + name, p.Network
	}
	return p.Group, p.Network
}

// enter puts a host into its place in the twin.
func (r *run) enter(name string, p Place) {
	h := r.w.host(name)
	group, above := groupsOf(name, p)
	if h.group == group && h.above == above && h.place.Addr == p.Addr {
		h.limits, h.place = p.Site, p
	} else {
		r.leave(h)
		g := r.w.group(group)
		if h.limits, h.place, h.group, h.above = p.Site, p, group, above; above != "" {
			g.merge(h.twinPace)
			r.w.group(above).last = max(r.w.group(above).last, h.last)
		} else if h.wasSite {
			g.last = max(g.last, h.last)
		}
	}
	if p.Network == "" {
		r.w.group(p.Addr.String()).address = p.Address
	}
}

// leave takes a host out of its group in the twin.
func (r *run) leave(h *twinHost) {
	if h.group == "" {
		return
	}
	if h.wasSite = !isAddress(h.group); h.wasSite {
		h.merge(r.w.groups[h.group].twinPace)
	}
	h.group, h.above = "", ""
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
			r.w.due(h.group) <= r.now && !r.w.awaitsHosts(h.group) && h.above == "" && r.w.mayGo(r.now, h) {
			r.t.Fatalf("%s has a slot for %d documents; %s of %s waits",
				used, r.w.groups[used].sent, name, h.group)
		}
	}
}

func (r *run) offer() {
	name := r.hostName()
	origin := fmt.Sprintf("%s://%s%s", []string{"http", "https"}[r.rng.IntN(2)], name,
		[]string{"", "", ":81", ":82"}[r.rng.IntN(4)])
	o := r.s.EnsureOrigin([]byte(origin), []byte(name))
	id := r.s.HostOf(o)
	if !r.s.Host(id).Settled() {
		p := r.place(name)
		r.enter(name, p)
		r.s.Host(id).Bind(r.now, p)
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
		Priority: priority, OfOrigin: r.nextID%2 == 0,
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

// setLimits changes the limits of a host.
func (r *run) setLimits() {
	name := r.hostName()
	id, h := r.s.FindHost([]byte(name)), r.w.host(name)
	if id == 0 || h.group == "" {
		return
	}
	h.limits = r.limits()
	r.s.Host(id).SetLimits(r.now, h.limits)
}

func (r *run) limits() Limits {
	return Limits{
		Gap:        []time.Duration{0, 0, 300 * time.Millisecond, 3 * time.Second}[r.rng.IntN(4)],
		Concurrent: []int{0, 0, 1, r.w.cfg.MaxConcurrent}[r.rng.IntN(4)],
		Blocked:    r.rng.IntN(6) == 0,
		Raises:     r.rng.IntN(2) == 0,
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
	p, h, elsewhere := r.place(name), r.w.host(name), r.rng.IntN(2) == 0
	if !r.places {
		p.Site = r.limits()
	}
	open := r.isOpen(name)
	if moved := r.s.Host(id).Move(r.now, p, elsewhere); moved == open {
		r.t.Fatalf("Move(%s) = %v; a request is open: %v", name, moved, open)
	}
	if h.moving, h.to, h.toAbove = open, "", ""; open {
		if !elsewhere {
			h.to, h.toAbove = groupsOf(name, p)
		}
		if h.toAbove == h.above || h.toAbove == h.group {
			h.toAbove = ""
		}
		if h.toAbove != "" {
			g, of := r.w.group(h.toAbove), h.twinPace
			if !isAddress(h.group) {
				of = r.w.groups[h.group].twinPace
			}
			g.last = max(g.last, of.last)
		}
		return
	}
	r.leave(h)
	r.enter(name, p)
	r.s.Host(id).Bind(r.now, p)
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
	may, lines := r.w.mayAsk(r.now, r.slotted)
	switch {
	case ok == (len(may) > 0):
		r.lines = 0
	case ok:
		h := r.w.hosts[string(r.s.Host(t.Host).Name())]
		r.t.Fatalf("Next = %s, which may not be asked: %+v\n%+v\n%+v", r.s.Host(t.Host).Name(), h, r.w.groups[h.group],
			r.s.Host(t.Host).View())
	case !lines:
		r.t.Fatalf("Next = %v (wait %v), but may ask %v", ok, wait, may)
	case r.lines == 0:
		r.lines = r.now
	case r.now > r.lines+20*time.Second:
		r.t.Fatalf("Next = %v (wait %v) since %v, but may ask %v", ok, wait, r.lines, may)
	}
	if !ok {
		return
	}
	name := string(r.s.Host(t.Host).Name())
	h := r.w.host(name)
	group := h.group
	if !r.w.mayGo(r.now, h) || r.s.Host(t.Host).Addr() != h.place.Addr {
		r.t.Fatalf("Next chose %s of %s, below %q, at %v, which may not be asked", name, group, h.above,
			r.s.Host(t.Host).Addr())
	}
	if due, allowed := may[group]; !allowed || due > r.now || t.Due > r.now {
		r.t.Fatalf("Next chose %s, due %v; of %v", group, t.Due, may)
	}
	want := r.w.first(name)
	if got := r.s.Doc(t.Doc); want == nil || string(got.ID) != want.id || got.Attempts != want.attempts ||
		t.Pool != want.pool || string(r.s.Origin(t.Origin).Key()) != want.origin ||
		string(got.AppendURL(nil)) != want.origin+"/"+want.id {
		r.t.Fatalf("Next of %s = %s %s (attempts %d, for pool %d), want %+v",
			name, got.ID, got.AppendURL(nil), got.Attempts, t.Pool, want)
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
	g.last, h.last = r.now, max(h.last, r.now)
	if !isAddress(group) {
		h.last = 0 // the group's counts
	}
	g.active++
	g.sent++
	h.open++
	if h.above != "" {
		r.w.groups[h.above].active++
		r.w.groups[h.above].last = r.now
	}
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
	h := r.w.hosts[d.host]
	of, base := r.w.siteOf(h)
	of.learn(base, status, retry)
	if status == 429 || status == 503 || retry > 0 && status >= 300 {
		of.notBefore = max(of.notBefore, r.now+retry)
	}
	at, site := h.group, d.host
	if h.above != "" {
		at = h.above
		if isAddress(at) {
			site = h.group
		}
	}
	if !isAddress(at) {
		return
	}
	g := r.w.groups[at]
	switch {
	case status == 200:
		g.success = r.now
		g.learn(r.w.gap(at), status, 0)
	case status == 429 || status == 503:
		g.failures[site] = r.now
		all := slices.Sorted(maps.Values(g.failures))
		slices.Reverse(all)
		if len(all) > 1 && all[1] >= g.success || len(all) > 2 && all[2] >= r.now-time.Minute {
			g.learn(r.w.gap(at), status, 0)
		}
	}
}

// drop ends a transaction in the twin.
func (r *run) drop(trans TransID, d *twinDoc) {
	delete(r.w.open, trans)
	r.ended = append(r.ended, trans)
	d.inFlight = false
	h := r.w.hosts[d.host]
	h.open--
	r.w.groups[h.group].active--
	if h.above != "" {
		r.w.groups[h.above].active--
	}
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
	name, _, _ = strings.Cut(name, ":")
	h := r.w.hosts[name]
	mayAsk, _ := r.w.mayAsk(r.now, r.slotted)
	_, may := mayAsk[h.group]
	may = may && r.w.mayGo(r.now, h)
	closed := h.blocked != 0 || h.limits.Blocked || h.moving || h.held[queue.origin]
	queued := slices.ContainsFunc(r.w.queue[name], func(d *twinDoc) bool {
		return d.poolQueue() == queue &&
			!d.inFlight
	})
	want := may && !closed && queued
	if ok && !want || want && !ok && h.above == "" && !r.w.isAbove(h.group) || queued != (doc != 0) {
		r.t.Fatalf("ResumeFirst of pool %d, of %v = %v; its group may be asked %v, closed %v, queued %v (first %d)",
			pool, queue, ok, may, closed, queued, doc)
	}
	if ok && (turn.Doc != doc || turn.Pool != pool || string(r.s.Origin(turn.Origin).Key()) != queue.origin) {
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
	if got := r.s.Pool(pool).Requeue(r.now, n, blame); got != over {
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
			r.s.Origin(o).SetRobotsPending(r.now, held)
			h.held[string(r.s.Origin(o).Key())] = held
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
	r.checkLevels()
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

// checkLevels counts again what Counts has by level.
func (r *run) checkLevels() {
	var want [Levels]LevelCounts
	r.s.Hosts(0, math.MaxUint32>>1, func(id uint32) {
		h := r.s.hosts.At(id)
		want[r.s.waitsFor(h, r.s.groups.At(h.group))].Waiting++
	})
	for _, id := range r.s.groupByID {
		if g := r.s.groups.At(id); g.kind == ofAddress && r.s.pacer.extra(&g.pace).backoff > 0 {
			want[AddressLevel].BackingOff++
		}
	}
	got := r.s.Counts().Levels
	for level := SiteLevel; int(level) < Levels; level++ {
		if got[level].Waiting != want[level].Waiting || got[level].BackingOff != want[level].BackingOff {
			r.t.Fatalf("Counts of level %v = %+v, want %+v", level, got[level], want[level])
		}
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
			counts[groupCount(r.s.groupByID[idOf(group)], crawl)] = true
		}
	}
	for _, id := range r.s.groupByID {
		got, name := map[string]int{}, r.s.Group(id).Name()
		if g := r.s.groups.At(id); g.kind == ofSite && r.s.named.names[g.id] == "" {
			name = "site " + name
		}
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
			cfg.MaxConcurrent = max(cfg.Concurrent, min(cfg.Concurrent+int(seed%4), cfg.Len))
			cfg.SiteGap, cfg.SiteConcurrent = time.Duration(1+seed%3)*time.Second, min(1+int(seed%3)/2, cfg.Len)
			r := &run{t: t, rng: rand.New(rand.NewPCG(seed, 9)), s: New(cfg), w: newTwin(cfg), places: seed%4 > 1}
			r.w.cfg = r.s.cfg.Config
			for n := range 2 {
				name, l := fmt.Sprintf("net%d", n), AddressLimits{Gap: time.Second / 2, Concurrent: 1 + n}
				r.w.networks[name] = l
				r.s.SetCap(0, name, l.Gap, l.Concurrent)
			}
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
