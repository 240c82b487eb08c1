// Package addresses keeps the pace of sites and addresses for URL Frontier clients. A client asks
// the hosts of the queues that it was given URLs of. So a queue counts as one open request while
// clients have URLs of it, and each URL counts as one request in time.
//
// A queue that may not be asked yet gets a turn: a time at which it is looked at again. The turns
// of an address are as far apart as its requests, so one request costs O(log n) however many queues
// wait for the address.
//
// Times are milliseconds since 1970. A Table is not safe for concurrent use.
package addresses

import (
	"net/netip"
	"strings"
	"time"

	"urlserver/docindex"
	"urlserver/internal/container/slab"
	"urlserver/internal/container/timeheap"
)

// Table has the paces of the sites, addresses and shared networks of the queues that it knows.
// Queues go by numbers that it gives. Use New.
type Table struct {
	began    int64
	queues   slab.Slab[queue]
	paces    slab.Slab[pace]
	sites    map[string]uint32
	networks map[string]uint32
	addrs    map[netip.Addr]uint32
	unused   timeheap.Heap // paces without queues, by when they may be forgotten; a Duration is ms since 1970
}

// pace is of a site, an address or a shared network.
type pace struct {
	name    string     // of a site or a network
	addr    netip.Addr // of an address
	limit   docindex.Pace
	use     docindex.AddressUse // of an address or a network; nil: nobody else uses it
	raised  docindex.Pace       // the slowest pace that rules allow its sites
	last    int64               // the last request; 0: none since the start
	next    int64               // no request before
	turn    int64               // the last one that was given
	queues  uint32
	slow    uint32 // of these, those whose sites no rule makes faster
	open    int    // of these, those of which clients have URLs
	waiting int64  // of these, those that have a turn
	offered uint32 // the queue that may be taken now; 0: none
	head    uint32 // the queue that is the next one, as its turn has come already; 0: none

	address   uint32 // of a site: the address that it joined last; 0: a network
	failures  [failingSites]failure
	succeeded int64 // when one of its sites did
	backoff   int64 // gap while the address backs off; 0: it does not
}

// queue is bound to the paces of a site and of an address or network.
type queue struct {
	site, address uint32
	now           [2]uint32 // the site and address of its host now, if others, while clients have URLs; 0: the same
	raises        bool
	open          bool // clients have URLs of it, or a call is about to take some
	waits         bool // it has a turn
	turn          int64
	notBefore     int64 // by the address where its host was before
}

// New returns a table. Each site and address that the table learns of later counts as asked at now,
// since nobody knows when it was asked before.
func New(now int64) *Table {
	return &Table{began: now, sites: map[string]uint32{}, networks: map[string]uint32{},
		addrs: map[netip.Addr]uint32{}}
}

// Bind tells the table where the host of a queue is. id is 0 for a queue that the table does not
// know. It returns the queue's number. moving says that clients have URLs of the queue and ask the
// address that was known before; the queue stays there until Return, and is open at both.
func (t *Table) Bind(id uint32, host []byte, a *docindex.HostAddress, now int64) (_ uint32, moving bool) {
	t.forgetUnused(now)
	if id == 0 {
		id = t.queues.New()
		t.join(t.queues.At(id), host, a)
		return id, false
	}
	q := t.queues.At(id)
	switch {
	case t.isAt(q, host, a):
		t.moveTo(q, q.site, q.address, now)
		t.setLimits(q, a)
	case q.open:
		t.moveTo(q, t.siteOf(host, a), t.above(a), now)
		return id, true
	default:
		before := max(q.notBefore, t.paces.At(q.site).next, t.paces.At(q.address).next)
		t.part(id, now)
		*q = queue{notBefore: before}
		t.join(q, host, a)
	}
	return id, false
}

// isAt reports whether a queue is bound to the address that is known now.
func (t *Table) isAt(q *queue, host []byte, a *docindex.HostAddress) bool {
	site, address := t.paces.At(q.site).name, t.paces.At(q.address)
	if a.Site == "" && site != string(host) || a.Site != "" && site != mark+a.Site {
		return false
	}
	if a.Network != "" {
		return address.name == mark+a.Network
	}
	return address.name == "" && address.addr == a.Addr
}

// mark begins the names that rules give, so that they are not taken for hosts.
const mark = " "

// join binds a queue.
func (t *Table) join(q *queue, host []byte, a *docindex.HostAddress) {
	q.site, q.address = t.siteOf(host, a), t.above(a)
	if t.paces.At(q.site).address = 0; a.Network == "" {
		t.paces.At(q.site).address = q.address
	}
	for _, id := range [...]uint32{q.site, q.address} {
		p := t.paces.At(id)
		p.queues++
		p.slow++
		t.unused.Remove(id)
	}
	t.setLimits(q, a)
	t.carry(q, q.address)
}

// siteOf returns the number of the pace of a host's site, which has its limit now.
func (t *Table) siteOf(host []byte, a *docindex.HostAddress) (id uint32) {
	if id = t.sites[string(host)]; a.Site != "" {
		id = named(t, t.sites, mark+a.Site, pace{name: mark + a.Site})
	} else if id == 0 {
		id = named(t, t.sites, string(host), pace{name: string(host)})
	}
	p := t.paces.At(id)
	if p.next == 0 {
		p.next = t.began + a.SitePace.Gap
	}
	p.limit = a.SitePace
	return id
}

// above returns the number of the pace of an address or of its network, which has its limit now.
func (t *Table) above(a *docindex.HostAddress) (id uint32) {
	if a.Network != "" {
		id = named(t, t.networks, a.Network, pace{name: mark + a.Network})
	} else {
		id = named(t, t.addrs, a.Addr, pace{addr: a.Addr})
	}
	p := t.paces.At(id)
	if p.next == 0 {
		p.next = t.began + a.AddressPace.Gap
	}
	p.limit, p.use, p.next = a.AddressPace, a.Use, max(p.next, a.NotBefore)
	return id
}

// moveTo makes a queue that clients have URLs of open at the site and address of its host now, too,
// where these are others. So its URLs count at all of them until they end.
func (t *Table) moveTo(q *queue, site, address uint32, now int64) {
	bound := [...]uint32{q.site, q.address}
	for i, to := range [...]uint32{site, address} {
		if to == bound[i] {
			to = 0
		}
		from := q.now[i]
		if from == to {
			continue
		}
		if q.now[i] = to; from != 0 {
			p := t.paces.At(from)
			p.open--
			p.tellUse()
			t.leave(from, now)
		}
		if to != 0 {
			t.carry(q, to)
			p := t.paces.At(to)
			p.open++
			p.queues++
			t.unused.Remove(to)
			p.tellUse()
		}
	}
}

// carry makes the last request to the site of a queue count where its host has come.
func (t *Table) carry(q *queue, to uint32) {
	p := t.paces.At(to)
	p.next = max(p.next, t.paces.At(q.site).last+max(p.now().Gap, p.backoff))
}

// leave takes a queue from a pace, which may be forgotten when no queue is left and its gap has
// passed.
func (t *Table) leave(id uint32, now int64) {
	p := t.paces.At(id)
	if p.queues--; p.queues == 0 {
		p.raised = docindex.Pace{}
		t.unused.Set(id, time.Duration(max(p.next, now)))
	}
}

// named returns the number of a pace, and adds it if there is none.
func named[K comparable](t *Table, all map[K]uint32, key K, as pace) uint32 {
	id := all[key]
	if id == 0 {
		id = t.paces.New()
		*t.paces.At(id) = as
		all[key] = id
	}
	return id
}

// both returns the paces that bind a queue.
func (t *Table) both(q *queue) [2]*pace { return [2]*pace{t.paces.At(q.site), t.paces.At(q.address)} }

// setLimits sets what settings and rules say now.
func (t *Table) setLimits(q *queue, a *docindex.HostAddress) {
	address := t.paces.At(t.above(a))
	t.paces.At(q.site).limit = a.SitePace
	switch {
	case a.Raises && !q.raises:
		address.slow--
	case !a.Raises && q.raises:
		address.slow++
	}
	if q.raises = a.Raises; !q.raises {
		return
	}
	r := &address.raised
	if r.Open == 0 {
		*r = a.SitePace
	}
	r.Gap, r.Open = max(r.Gap, a.SitePace.Gap), min(r.Open, a.SitePace.Open)
}

// now returns the pace that holds. Rules of sites make an address only as fast as all its sites may
// be.
func (p *pace) now() docindex.Pace {
	all := docindex.Pace{Gap: p.limit.Gap, Open: max(1, p.limit.Open)}
	if p.slow == 0 && p.raised.Open > 0 {
		all = docindex.Pace{Gap: min(p.limit.Gap, p.raised.Gap), Open: max(1, p.limit.Open, p.raised.Open)}
	}
	if p.use != nil {
		return p.use.Share(all)
	}
	return all
}

// retryUse is how long nothing is given out at an address, in ms, after others were using it.
const retryUse = 200

// isUsable reports whether others leave an address to clients now.
func (p *pace) isUsable(now int64) bool {
	if p.use == nil || p.use.Usable(int(p.waiting)) {
		return true
	}
	p.next = max(p.next, now+retryUse)
	return false
}

// IsUsable reports whether others leave the address of a queue to clients now. If not, they are
// told that clients want it.
func (t *Table) IsUsable(id uint32) bool {
	p := t.paces.At(t.queues.At(id).address)
	return p.use == nil || p.use.Usable(max(1, int(p.waiting)))
}

// MayLeave reports whether URLs of a queue that was taken may be given out now: others have not got its
// address since.
func (t *Table) MayLeave(id uint32) bool {
	p := t.paces.At(t.queues.At(id).address)
	return p.use == nil || p.use.Holds()
}

// MayFrom returns when a queue may be taken. If that is now, the caller has it taken, or calls
// Withdraw. Otherwise it is the queue's turn: the caller asks again then.
func (t *Table) MayFrom(id uint32, now int64) (at int64) {
	q := t.queues.At(id)
	switch {
	case q.waits && q.turn > now:
		return q.turn
	case t.isFree(q, now) && (q.open || t.offer(id, q)):
		return now
	case q.open:
		return max(t.freeFrom(q), now+1)
	case q.waits && t.isHead(id, q):
		if q.turn = max(t.freeFrom(q), now+1); t.isFull(q) {
			q.turn = max(q.turn, now+max(1, t.paces.At(q.address).now().Gap))
		}
		return q.turn
	}
	return t.giveTurn(id, q, now)
}

// isFree reports whether a queue may be asked now.
func (t *Table) isFree(q *queue, now int64) bool {
	return t.freeFrom(q) <= now && t.paces.At(q.address).isUsable(now) && (q.open || !t.isFull(q))
}

// freeFrom returns when a queue may be asked as far as times go.
func (t *Table) freeFrom(q *queue) int64 {
	return max(q.notBefore, t.paces.At(q.site).next, t.paces.At(q.address).next)
}

// HasFailed reports whether a site of the address of a queue has failed lately.
func (t *Table) HasFailed(id uint32) bool {
	return t.paces.At(t.queues.At(id).address).failures != [failingSites]failure{}
}

// isFull reports whether as many queues of the site or of the address are open as may be.
func (t *Table) isFull(q *queue) bool {
	site, address := t.paces.At(q.site), t.paces.At(q.address)
	return site.open >= site.now().Open || address.open >= address.now().Open
}

// offer reports whether a queue is the one of its address that may be taken now. A queue whose turn
// has come may be taken as well: the first one may be of a crawl that no call asks for.
func (t *Table) offer(id uint32, q *queue) bool {
	p := t.paces.At(q.address)
	if p.offered == 0 {
		p.offered = id
	}
	return p.offered == id || q.waits
}

// isHead reports whether a queue whose turn has come is the next one of its address. It need not
// wait behind the others then.
func (t *Table) isHead(id uint32, q *queue) bool {
	p := t.paces.At(q.address)
	if p.head == 0 {
		p.head = id
	}
	return p.head == id
}

// Withdraw says that a queue is not to be taken: it is not due any more.
func (t *Table) Withdraw(id uint32) {
	q := t.queues.At(id)
	p := t.paces.At(q.address)
	if p.offered == id {
		p.offered = 0
	}
	if p.head == id {
		p.head = 0
	}
	if q.waits {
		q.waits = false
		for _, p := range t.both(q) {
			p.waiting--
		}
	}
}

// giveTurn gives a queue the turn behind those of all others.
func (t *Table) giveTurn(id uint32, q *queue, now int64) int64 {
	t.Withdraw(id)
	at := max(q.notBefore, now+1)
	for _, p := range t.both(q) {
		pace := p.now()
		gap, from := max(1, pace.Gap, p.backoff), max(p.next, now)
		if p.open >= pace.Open || p.offered != 0 {
			from = max(from, now+gap)
		}
		at = max(at, min(max(from, p.turn+gap), from+p.waiting*gap))
	}
	q.turn, q.waits = at, true
	for _, p := range t.both(q) {
		p.turn = at
		p.waiting++
	}
	return at
}

// Take opens a queue for a call that is going to hand out its URLs. It returns false if the queue
// may not be asked now.
func (t *Table) Take(id uint32, now int64) bool {
	q := t.queues.At(id)
	if !t.isFree(q, now) {
		return false
	}
	t.Withdraw(id)
	t.open(q)
	return true
}

func (t *Table) open(q *queue) {
	if q.open {
		return
	}
	q.open = true
	for _, p := range t.both(q) {
		p.open++
		p.tellUse()
	}
}

// tellUse tells AddressUse the number of queues at an address of which clients have URLs.
func (p *pace) tellUse() {
	if p.use != nil {
		p.use.SetOpen(p.open, p.next, p.now().Gap)
	}
}

// Reopen opens a queue of which clients have had URLs since before the table knew it.
func (t *Table) Reopen(id uint32) {
	t.Withdraw(id)
	t.open(t.queues.At(id))
}

// Gave counts a URL that was handed out. Gaps count from at.
func (t *Table) Gave(id uint32, at int64) {
	for _, p := range t.counting(id) {
		if p == nil {
			continue
		}
		p.last = max(p.last, at)
		p.next = max(p.next, at) + max(p.now().Gap, p.backoff)
		if p.use != nil {
			p.use.Gave()
		}
	}
}

// Left makes the gaps after the URL that Gave counted last count from at, when it leaves.
func (t *Table) Left(id uint32, at int64) {
	for _, p := range t.counting(id) {
		if p != nil {
			p.last = max(p.last, at)
			p.next = max(p.next, at+max(p.now().Gap, p.backoff))
		}
	}
}

// Paid has the times until which the requests to a queue have to wait, one for each pace that counts them.
type Paid struct {
	at   [4]uint32
	next [4]int64
}

// Paid returns until when the requests to a queue have to wait.
func (t *Table) Paid(id uint32) (of Paid) {
	q := t.queues.At(id)
	of.at = [...]uint32{q.site, q.address, q.now[0], q.now[1]}
	for i, p := range t.counting(id) {
		if p != nil {
			of.next[i] = p.next
		}
	}
	return of
}

// TakeBack undoes the count of URLs of a queue that have not left. It restores the time of each
// pace that nothing has changed since. It leaves a pace that backs off, since a backoff may have
// begun without a change of the time.
func (t *Table) TakeBack(id uint32, before, after *Paid) {
	now := t.Paid(id)
	for i, p := range t.counting(id) {
		if p == nil || p.backoff > 0 || now.at[i] != after.at[i] || now.at[i] != before.at[i] ||
			now.next[i] != after.next[i] {
			continue
		}
		p.next = before.next[i]
		p.tellUse()
	}
}

// counting returns the paces at which the requests to a queue count: those that bind it, and those
// of its host now, if these are others.
func (t *Table) counting(id uint32) (all [4]*pace) {
	q := t.queues.At(id)
	for i, of := range [...]uint32{q.site, q.address, q.now[0], q.now[1]} {
		if of != 0 {
			all[i] = t.paces.At(of)
		}
	}
	return all
}

// Return says that clients have no URL of a queue any more.
func (t *Table) Return(id uint32) {
	q := t.queues.At(id)
	if !q.open {
		return
	}
	q.open = false
	for _, p := range t.both(q) {
		p.open--
		p.tellUse()
	}
	t.moveTo(q, q.site, q.address, 0)
}

// IsOpen reports whether clients have URLs of a queue, or a call is about to take some.
func (t *Table) IsOpen(id uint32) bool { return t.queues.At(id).open }

// Wait returns when a queue may be taken, without giving it a turn, and why not before. full says
// that requests have to end before.
func (t *Table) Wait(id uint32, now int64) (at int64, full bool, why docindex.Wait) {
	q := t.queues.At(id)
	site, address := t.paces.At(q.site), t.paces.At(q.address)
	at = max(now, t.freeFrom(q))
	full = at == now && !q.open && t.isFull(q)
	bySite := site.next >= max(address.next, q.notBefore)
	switch {
	case full:
		bySite = site.open >= site.now().Open
	case q.waits && q.turn > at: // behind others of the site, or of the address
		bySite = site.waiting > 1 && site.waiting == address.waiting
	}
	if q.waits {
		at = max(at, q.turn)
	}
	if full {
		why.Rule = docindex.WaitAddressInUse
	} else {
		why.Rule = docindex.WaitAddress
	}
	if bySite {
		why.Name = strings.TrimPrefix(site.name, mark)
		why.Gap, why.Count = time.Duration(site.now().Gap)*time.Millisecond, uint64(site.waiting)
		return at, full, why
	}
	why.Level, why.Name = address.is()
	why.Gap = time.Duration(max(address.now().Gap, address.backoff)) * time.Millisecond
	why.Count, why.Sites = uint64(address.waiting), t.failing(q.address)
	return at, full, why
}

// is returns which address or network has the pace.
func (p *pace) is() (level docindex.WaitLevel, name string) {
	if p.addr.IsValid() {
		return docindex.AddressWait, p.addr.String()
	}
	return docindex.NetworkWait, strings.TrimPrefix(p.name, mark)
}

// Levels returns the paces that bind a queue.
func (t *Table) Levels(id uint32) (site, address docindex.LevelStatus) {
	q := t.queues.At(id)
	site, address = t.paces.At(q.site).status(), t.paces.At(q.address).status()
	site.Name = strings.TrimPrefix(t.paces.At(q.site).name, mark)
	address.Level, address.Name = t.paces.At(q.address).is()
	address.Sites = t.failing(q.address)
	return site, address
}

func (p *pace) status() docindex.LevelStatus {
	now := p.now()
	l := docindex.LevelStatus{
		Gap:     time.Duration(max(now.Gap, p.backoff)) * time.Millisecond,
		Backoff: time.Duration(p.backoff) * time.Millisecond,
		Open:    p.open, MostOpen: now.Open, Next: time.UnixMilli(p.next).UTC(),
	}
	if p.last > 0 {
		l.Last = time.UnixMilli(p.last).UTC()
	}
	return l
}

// Forget removes a queue.
func (t *Table) Forget(id uint32, now int64) {
	t.part(id, now)
	t.queues.Free(id)
}

// part unbinds a queue.
func (t *Table) part(id uint32, now int64) {
	t.Return(id)
	t.Withdraw(id)
	q := t.queues.At(id)
	if !q.raises {
		t.paces.At(q.address).slow--
	}
	t.paces.At(q.site).slow--
	t.leave(q.site, now)
	t.leave(q.address, now)
}

// forgetUnused forgets paces without queues whose gap has passed.
func (t *Table) forgetUnused(now int64) {
	for range 2 {
		id, at, ok := t.unused.Min()
		if !ok || int64(at) > now {
			return
		}
		t.unused.Remove(id)
		p := t.paces.At(id)
		switch {
		case p.addr.IsValid():
			delete(t.addrs, p.addr)
		case t.networks[p.name[min(1, len(p.name)):]] == id:
			delete(t.networks, p.name[1:])
		default:
			delete(t.sites, p.name)
		}
		t.paces.Free(id)
	}
}

// Bytes returns the memory in use.
func (t *Table) Bytes() int64 {
	return int64(t.paces.Len())*paceBytes + int64(t.queues.Len())*queueBytes
}

// Of a record, in bytes; a pace with its name and its places in maps.
const (
	paceBytes  = 228
	queueBytes = 40
)
