package engine

import (
	"hash/maphash"
	"net/netip"
	"slices"
	"time"

	"urlserver/internal/container/dense"
	"urlserver/internal/container/timeheap"
)

// LeaseBatch is work for the shared reservation. At most one batch is out at a time. The daemon
// must do Releases before Acquires, and fill in the answers.
type LeaseBatch struct {
	Reports  []HeldCount
	Releases []Release
	Binds    []Bind
	Extends  []LeaseRequest
	Acquires []LeaseRequest
	Forgets  []string // slices to be deleted some time later, unless somebody has or wants them then

	// ReportsLost is an answer: neither Reports nor any earlier report counts.
	ReportsLost bool

	began  time.Duration
	crawls int // in Held
}

// reset empties c for use at another time.
func (c *LeaseBatch) reset(now time.Duration) {
	clear(c.Reports)
	clear(c.Releases)
	clear(c.Binds)
	clear(c.Extends)
	clear(c.Acquires)
	clear(c.Forgets)
	*c = LeaseBatch{
		Reports: c.Reports[:0], Releases: c.Releases[:0], Binds: c.Binds[:0], Extends: c.Extends[:0],
		Acquires: c.Acquires[:0], Forgets: c.Forgets[:0], began: now,
	}
}

// Release releases the lease of a group that may be requested again after Next, or of a slice.
type Release struct {
	group  uint32
	Host   string // the lease host: the group's address or, if it has a name, one of its hosts
	Token  uint64
	Next   time.Duration
	Rest   time.Duration // for so long after Next this daemon leaves the group to others
	Delete bool          // the daemon holds no document of the group
	Slice  bool          // a slice, or an address leased for site groups or clients: no documents are counted under it
}

// Bind proposes the group of a host: its address, by a rule an alias, or the host itself.
type Bind struct {
	host     uint32
	mark     bool // it binds the mark of the host, not the host
	Host     string
	Addr     netip.Addr
	Proposed string // the address, or the host itself
	Alias    string // by a rule, which goes before Proposed; "": none
	Joins    bool   // the host was not in an alias when it was bound last
	Own      bool   // the host is to be a group by itself, under its own name
	TTL      time.Duration
	Ask      bool          // ask for the group in force, and extend the binding as little as possible
	Group    string        // the answer: the group in force; "": there is none
	Left     time.Duration // the answer: how long Group holds at least; below 0: see reservation.Bound
	Covered  bool          // the answer: Group is an alias that has Addr as a host, too
}

// LeaseRequest asks for a lease to be acquired or extended.
type LeaseRequest struct {
	Host    string
	Token   uint64 // of the lease to be extended, or of the acquired one
	Answer  LeaseAnswer
	Group   string // an answer: the group whose lease this is; "": the reservation does not tell
	Unknown bool   // an answer: the reservation has no record of the group
	Slice   bool   // as in Release
	group   uint32
	slice   *netSlice
}

// LeaseAnswer is the answer to a LeaseRequest.
type LeaseAnswer uint8

const (
	Unanswered LeaseAnswer = iota // the reservation could not be asked
	Granted
	Denied
)

const (
	leaseBatch      = 1000 // requests of each kind in one LeaseBatch
	fewestAcquires  = 8    // adapt lets a LeaseBatch have at least this many requests for new leases
	reportsPerLease = 6
	// The engine extends the lease of an alias for aliasLeases leases. Until then the lease still
	// covers hosts that have left the alias since it began, and their addresses. A new lease does
	// not.
	aliasLeases = 10
	keepShare   = 6           // an unneeded lease is kept for 1/keepShare of a lease at most, so it is not extended
	leaseRetry  = time.Second // until a reservation that did not answer is asked again
)

// leases has the leases of the groups, and the requests for the reservation.
type leases struct {
	out      bool       // request is at the reservation
	request  LeaseBatch // a buffer while out is false
	held     heldLeases
	renewals timeheap.Heap // groups whose leases are held, by when to extend them
	releases []Release     // for the next batch
	idle     []uint32      // a buffer
	retryAt  time.Duration // the reservation is not asked before: it did not answer
	acquires int           // most requests for new leases in one batch; see adapt
	bindings bindings
	reporter reporter
	slices   netSlices
}

// bindings has the groups that the reservation has bound hosts to, and the bindings to ask for.
type bindings struct {
	seed      maphash.Seed
	byHost    dense.Array[binding]
	proposals []proposal
	questions timeheap.Heap // hosts, by when to ask whether their bindings have ended
}

// reporter reports to the reservation how many documents are held.
type reporter struct {
	reported  reportedGroups
	reporters map[string]uint32 // the group that was reported last under a host; groups come and go
	nextAt    time.Duration     // when changed groups are reported
	changed   []uint32          // groups, for the next batch
	truncated []uint32          // groups of which not all crawls were reported, for the next round of changes
}

// heldLeases has the leases that the daemon holds, by group.
type heldLeases struct {
	byGroup dense.Array[heldLease]
	len     int
}

type heldLease struct {
	host  string // "": there is none
	token uint64
	since time.Duration
	rest  time.Duration // as in Release
}

func (h *heldLeases) of(group uint32) (heldLease, bool) {
	found := h.byGroup.Get(group)
	return found, found.host != ""
}

func (h *heldLeases) add(group uint32, lease heldLease) {
	at := h.byGroup.At(group)
	if at.host == "" {
		h.len++
	}
	*at = lease
}

// drop removes a lease, which must be there.
func (h *heldLeases) drop(group uint32) {
	*h.byGroup.At(group) = heldLease{}
	h.len--
}

func newLeases(opt Options) leases {
	return leases{
		acquires: leaseBatch,
		slices:   newNetSlices(opt.Lease, uint64(opt.Generation)),
		bindings: bindings{seed: maphash.MakeSeed()},
		reporter: reporter{reporters: map[string]uint32{}},
	}
}

// margin is how long before its end a lease counts as ended. It allows for clocks that differ,
// slow answers, and lines on their way.
func (e *Engine) margin() time.Duration { return e.opt.Lease / 10 }

// requestLeases gathers the next batch for the reservation: leases that the slots want or no
// longer need, leases to be extended, bindings, and reports.
func (e *Engine) requestLeases(due *waiter) {
	if e.opt.Lease == 0 {
		return
	}
	e.gatherReleases()
	if e.leases.out {
		return
	}
	if e.leases.retryAt > e.now {
		due.after(e.leases.retryAt - e.now)
		return
	}
	c := &e.leases.request
	c.reset(e.now)
	c.Releases, e.leases.releases = e.leases.releases, c.Releases
	e.gatherBinds(c, due)
	e.leases.slices.gather(e.now, c, e.sending.stopping)
	e.gatherExtends(c, due)
	for n := 0; len(c.Acquires) < e.leases.acquires && !e.sending.stopping; n++ {
		if n == leaseBatch { // the rest at the next step
			due.after(time.Millisecond)
			break
		}
		id := e.slots.NextWantedLease()
		if id == 0 {
			break
		}
		host := e.leaseHost(id)
		if wait := e.leavesLease(id, host); wait > 0 {
			e.slots.Group(id).LeaseDenied(e.now, wait)
			continue
		}
		c.Acquires = append(c.Acquires, LeaseRequest{group: id, Host: host, Slice: e.isUncounted(id)})
	}
	e.gatherReports(c, due)
	if len(c.Reports)+len(c.Releases)+len(c.Binds)+len(c.Extends)+len(c.Acquires)+len(c.Forgets) > 0 {
		e.leases.out, e.Out.Leases = true, c
	}
}

// leaseHost returns the host under which a group is leased.
func (e *Engine) leaseHost(group uint32) string {
	if e.slots.Group(group).IsSite() {
		return string(e.slots.Host(e.slots.Group(group).AnyHost()).Name())
	}
	return e.slots.Group(group).Name()
}

func (e *Engine) gatherReleases() {
	e.leases.idle = e.slots.ReleasedLeases(e.now, e.opt.Lease/keepShare, e.leases.idle[:0])
	for _, id := range e.leases.idle {
		e.releaseLease(id)
	}
}

func (e *Engine) releaseLease(group uint32) {
	h, ok := e.leases.held.of(group)
	if !ok {
		return
	}
	e.leases.held.drop(group)
	e.leases.renewals.Remove(group)
	uncounted := e.isUncounted(group)
	e.leases.releases = append(e.leases.releases, Release{
		group: group, Host: h.host, Token: h.token, Slice: uncounted, Rest: h.rest,
		Delete: !uncounted && e.slots.Group(group).Docs() == 0,
		Next:   max(0, e.slots.Group(group).FreeFrom()-e.now),
	})
}

// leaveLease gives up a lease that is not needed, or has lapsed. If a request is open, it does not
// release the lease: in the reservation the lease then lasts until its end, and the penalty
// follows.
func (e *Engine) leaveLease(group uint32) {
	if e.slots.Group(group).Open() == 0 {
		e.releaseLease(group)
		return
	}
	if _, ok := e.leases.held.of(group); ok {
		e.leases.held.drop(group)
		e.leases.renewals.Remove(group)
	}
}

// isUncounted reports whether a group is an address that is leased for site groups alone. It has no
// documents, so no report makes it known to a store that counts them.
func (e *Engine) isUncounted(group uint32) bool {
	return e.slots.Group(group).Docs() == 0 && e.slots.Group(group).HasSites()
}

func (e *Engine) gatherExtends(c *LeaseBatch, due *waiter) {
	for len(c.Extends) < leaseBatch {
		id, at, ok := e.leases.renewals.Min()
		if !ok {
			return
		}
		if at > e.now {
			due.after(at - e.now)
			return
		}
		if !e.slots.Group(id).Leased() { // it has lapsed
			e.leaveLease(id)
			continue
		}
		e.leases.renewals.Remove(id)
		h, _ := e.leases.held.of(id)
		e.yield(id, h)
		c.Extends = append(c.Extends, LeaseRequest{group: id, Host: h.host, Token: h.token})
	}
}

// leavesLease returns for how long the lease of a group is left to those who have open requests
// there without it: URL Frontier clients of this daemon or, where the address has just left a shared
// network, anybody.
func (e *Engine) leavesLease(group uint32, host string) time.Duration {
	g := e.slots.Group(group)
	if _, open := e.clientsLack(host); open {
		return e.opt.Lease / clientRetry
	}
	if g.Open() > 0 {
		return 0
	}
	return g.LeftSharedUntil() - e.now
}

// clientsLack is Options.ClientsLack.
func (e *Engine) clientsLack(host string) (waits, open bool) {
	if e.opt.ClientsLack == nil {
		return false, false
	}
	return e.opt.ClientsLack(host)
}

// ClientsMoved gives up the leases of addresses at which URL Frontier clients have URLs since a host
// has moved there.
func (e *Engine) ClientsMoved(addrs []string) {
	for id := range e.leases.held.byGroup.Cap() {
		if h, held := e.leases.held.of(id); held && slices.Contains(addrs, h.host) {
			e.yield(id, h)
		}
	}
}

// yield gives up the lease of a group for URL Frontier clients of this daemon that wait for it, if
// the engine has had it for a turn, or they have URLs of the group. After a turn these clients try
// for the lease no sooner than other daemons do. yield gives up the lease of an alias after
// aliasLeases, too.
func (e *Engine) yield(group uint32, h heldLease) {
	turn := time.Duration(turnLeases * float64(e.opt.Lease))
	waits, open := e.clientsLack(h.host)
	g := e.slots.Group(group)
	isOld := g.IsSite() && g.Name() != h.host && e.now >= h.since+aliasLeases*e.opt.Lease
	if !open && !isOld && (!waits || e.now < h.since+turn) {
		return
	}
	if !open {
		e.leases.held.byGroup.At(group).rest = e.opt.Lease / clientRest
	}
	g.YieldLease(e.now, e.opt.Lease/clientRest)
}

// LeasesFreed takes the leases that others have released. If the engine was denied the lease of one
// of these addresses, it asks for the lease again as soon as that is free.
func (e *Engine) LeasesFreed(releases []Release) {
	for i := range releases {
		if addr, err := netip.ParseAddr(releases[i].Host); err == nil {
			e.slots.LeaseFree(e.now, addr, releases[i].Next+releases[i].Rest)
		}
	}
}

// adapt halves the number of new leases that are requested at once after a batch that the
// reservation did not answer as a whole, and raises it slowly after one that was answered and
// full (RFC 5681, section 3.1, does the same to the congestion window of TCP). So daemons that
// share a slow reservation hold as many leases as it can extend in time.
func (l *leases) adapt(c *LeaseBatch) {
	unanswered := func(some []LeaseRequest) bool {
		return slices.ContainsFunc(some, func(r LeaseRequest) bool { return r.Answer == Unanswered })
	}
	switch {
	case unanswered(c.Extends) || unanswered(c.Acquires):
		l.acquires = max(fewestAcquires, l.acquires/2)
	case len(c.Acquires) >= l.acquires:
		l.acquires = min(leaseBatch, l.acquires+max(1, l.acquires/8))
	}
}

// LeasesAnswered takes the answers to Out.Leases.
func (e *Engine) LeasesAnswered(c *LeaseBatch) {
	e.leases.out = false
	e.leases.adapt(c)
	if c.ReportsLost {
		e.leases.reporter.reportAllAgain(e.now)
	}
	for i := range c.Binds {
		e.bindAnswered(&c.Binds[i], c.began)
	}
	for i := range c.Extends {
		e.extendAnswered(&c.Extends[i], c.began)
	}
	for i := range c.Acquires {
		e.acquireAnswered(&c.Acquires[i], c.began)
	}
}

// sliceAnswered takes the answer to a request for a slice.
func (e *Engine) sliceAnswered(c *LeaseRequest, began time.Duration) {
	switch {
	case c.Answer == Unanswered:
		e.leases.retryAt = e.now + leaseRetry
		e.stats.LeaseErrors++
	case c.Answer == Denied && c.Token != 0:
		e.stats.LeasesLost++
	}
	e.leases.slices.answered(e.now, began, e.margin(), c)
}

func (e *Engine) extendAnswered(c *LeaseRequest, began time.Duration) {
	if c.slice != nil {
		e.sliceAnswered(c, began)
		return
	}
	if h, ok := e.leases.held.of(c.group); !ok || h.token != c.Token {
		return // released meanwhile
	}
	switch c.Answer {
	case Granted:
		e.leaseGranted(c, began)
	case Denied:
		e.leases.held.drop(c.group)
		e.stats.LeasesLost++
		e.slots.Group(c.group).LeaseDenied(e.now, e.opt.Lease)
	case Unanswered: // the slots end the lease when its time is over
		e.leases.retryAt = e.now + leaseRetry
		e.leases.renewals.Set(c.group, e.leases.retryAt)
		e.stats.LeaseErrors++
	}
}

func (e *Engine) acquireAnswered(c *LeaseRequest, began time.Duration) {
	if c.slice != nil {
		e.sliceAnswered(c, began)
		return
	}
	switch c.Answer {
	case Granted:
		e.stats.LeasesGranted++
		e.leases.held.add(c.group, heldLease{host: c.Host, token: c.Token, since: e.now})
		if !e.isOfAnother(c) {
			e.leaseGranted(c, began)
			return
		}
		e.releaseLease(c.group)
		if e.takeOut(c) { // the next request names another host
			e.slots.Group(c.group).LeaseAgain()
			return
		}
	case Denied:
		e.stats.LeasesDenied++
		if c.Unknown { // so that it is reported again
			e.leases.reporter.forget(c.group)
		}
		if host := e.slots.Group(c.group).FirstInLine(); host != 0 {
			e.askAgain(host) // the address may be in the alias whose lease this daemon has
		}
		if e.isNamedAnew(c) {
			e.slots.Group(c.group).LeaseAgain()
			return
		}
	case Unanswered:
		e.leases.retryAt = e.now + leaseRetry
		e.stats.LeaseErrors++
	}
	e.slots.Group(c.group).LeaseDenied(e.now, e.opt.Lease/2)
}

// isOfAnother reports whether a lease is not of the group that it was asked for. The host under whose
// name it was asked for has left that group, as an alias has changed.
func (e *Engine) isOfAnother(c *LeaseRequest) bool {
	g := e.slots.Group(c.group)
	return c.Group != "" && g.IsSite() && g.Name() != c.Group && g.Name() != c.Host
}

// isNamedAnew reports whether the next request for the lease of an alias, which was denied, will
// name another host. The host that c names may have left the alias, and another daemon may have the
// lease of its new group. isNamedAnew takes hosts without documents out of the group until the host
// to be named next has documents; they are bound again when they get documents. If that is still
// the host that c names, isNamedAnew asks the reservation whether it has left the alias.
func (e *Engine) isNamedAnew(c *LeaseRequest) bool {
	g := e.slots.Group(c.group)
	if !g.IsSite() || g.Name() == c.Host {
		return false
	}
	host := g.AnyHost()
	for n := 0; n < leaseBatch && host != 0 && !e.slots.Host(host).Settled(); n++ {
		e.slots.Host(host).Unbind(e.now)
		host = g.AnyHost()
	}
	if host == 0 || string(e.slots.Host(host).Name()) != c.Host {
		return host != 0
	}
	switch b := e.binding(host); {
	case b.held && b.at == 0: // see holdBack
		e.bindAgain(host)
		return g.AnyHost() != host && g.AnyHost() != 0
	default:
		e.askAgain(host)
	}
	return false
}

// askAgain asks the reservation for the group of a host, if the last answer is at least one lease old.
func (e *Engine) askAgain(host uint32) {
	if b := e.binding(host); e.now >= b.at+e.opt.Lease {
		e.propose(host, b)
	}
}

// takeOut takes the host that a request names out of the group of the request. It returns whether another
// host of the group is named next.
func (e *Engine) takeOut(c *LeaseRequest) bool {
	g := e.slots.Group(c.group)
	host := e.slots.FindHost([]byte(c.Host))
	if host != 0 && g.AnyHost() == host {
		e.bindAgain(host)
	}
	return g.AnyHost() != host && g.AnyHost() != 0
}

// leaseGranted notes a lease, which began when the reservation was asked at the earliest.
func (e *Engine) leaseGranted(c *LeaseRequest, began time.Duration) {
	e.slots.Group(c.group).LeaseGranted(e.now, began+e.opt.Lease-e.margin())
	if !e.slots.Group(c.group).Leased() { // it is not needed any more, or has lapsed
		e.leaveLease(c.group)
		return
	}
	e.leases.renewals.Set(c.group, began+e.opt.Lease/3)
}

// ReleaseAll returns releases of all leases. The engine must do nothing after it.
func (e *Engine) ReleaseAll() []Release {
	e.gatherReleases()
	for group := range e.leases.held.byGroup.Cap() {
		e.releaseLease(group)
	}
	all := append(e.leases.releases, e.leases.slices.releaseAll(e.now, e.slots)...)
	for i := range all {
		all[i].Delete = true // what is held stays with the doc index
	}
	return all
}
