package sim

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"urlserver/docindex"
)

// oracle checks the daemon from outside. Its methods are called, in order, with what
// goes into the daemon and what comes out; complaint is the first violation.
type oracle struct {
	set       limits
	now       time.Duration
	wall      time.Time
	complaint *Complaint

	docs           []document // by DOC_ID, which is a number in the simulation
	hosts          map[string]*host
	origins        map[string]*origin
	groups         map[string]*group // by name
	open           map[string]*transaction
	used           map[string]uint64 // last generation, by TRANS_ID without its generation
	spiders        map[uint32]*spiderView
	silences       []silence      // by time
	ages           []*transaction // by time
	fetches        map[uint32]*robotsFetch
	ended          map[uint32]struct{}     // fetches that have ended
	blockedFetches map[uint32]*robotsFetch // of these, the ones that ended at a blocked host
	overLimit      map[*group]struct{}     // groups with more documents than limits.rejectOver
	answered       int                     // documents with DONE and no outcome yet
	held           int
	arrivals       uint32
	unseen         bool             // lines may be lost before the oracle sees them
	suspected      int              // held documents that were lost with a spider
	lostAt         time.Duration    // when the last connection was lost
	disabledSince  [3]time.Duration // since when sending is disabled, by reason; negative: it is not
	movers         []*host          // hosts that are to move to another address
	asking         bool
	asks           int
	judging        bool          // a question about robots.txt has no answer yet
	judgesAt       time.Duration // no question about robots.txt is allowed before
	ruledAt        time.Duration // when settings changed last
	slowest        time.Duration // the longest gap of all settings so far
	answers        time.Duration // total time in which name servers answered
	report         Report
	late           *late       // nil: the oracle sees each event at the moment at which it happens
	crawls         *crawlViews // nil: documents belong to no crawls
	service        *service    // nil: the oracle does not check how long documents wait
}

// document is what the oracle knows about a DOC_ID.
type document struct {
	origin       *origin
	url          uint64 // hash of its URL
	tx           *transaction
	taken        time.Duration
	ended        time.Duration
	arrival      uint32
	priority     int32
	sends        uint8 // how often it was sent, as far as that counts as an attempt
	lostTogether int   // number of young documents that were lost together with it, with itself
	lasted       bool  // it was lost after its spider had worked at it for a status timeout
	lost         bool  // it was lost with its spider
	alone        bool  // it may have been the cause of the last loss by itself
	sent         bool
	held         bool
	ever         bool // has ended before
	returned     bool // the daemon gave it back, and knows for an hour what it knew of it
	returnedAt   time.Duration
	answered     bool
	notBefore    time.Duration // a spider gave it back until then
	judged       bool          // a verdict on it was made outside the engine, and not used yet
	invalid      bool          // the index, or its URL, says that it is not to be sent
	endsAs       docindex.Kind // if invalid
	code         int16
}

// origin is scheme, host and port.
type origin struct {
	host       *host
	lastFetch  uint32 // of its robots.txt
	queues     []originQueue
	questionAt time.Duration // no question about its documents is allowed before
	robotsState
}

// originQueue is an origin's documents of one priority that were never sent, in the
// order in which they were taken.
type originQueue struct {
	priority int32
	docs     []arrival
}

type arrival struct {
	doc     *document
	arrival uint32
}

// level is what the oracle knows about requests to a site, an address or a shared network.
type level struct {
	name    string
	open    int
	asked   bool
	last    time.Duration // last request
	floor   time.Duration // no request is allowed before; of sites
	told    time.Duration // the same, as the daemon has told it to the index
	took    time.Duration // time that the last completed fetch took; of sites
	tookAt  time.Duration // end of that fetch
	backoff time.Duration // gap while backing off
	work    time.Duration // total time that all requests to it take at its pace
}

// target is where a request goes: to a site, and to the address or the shared network that it is
// at.
type target struct {
	site  *level // nil: there is no request
	above *group
}

type host struct {
	level      // as a site by itself; in a rule's group only open, asked, last and floor are kept
	origins    []*origin
	resolvedTo netip.Addr       // address that the last look-up gave; invalid: none
	until      time.Duration    // the daemon may use the last answer until then; 0: not known
	lookups    int              // look-ups of its name that are running
	fresh      bool             // a look-up has ended, and no line was sent since
	failed     bool             // the last look-up failed
	none       bool             // the last look-up said that there is no address
	failedAt   time.Duration    // the first of the consecutive failures
	failing    time.Duration    // value of oracle.answers at that failure
	givenUp    [2]time.Duration // the first and the last failure after which the daemon may have given the name up
	addr       netip.Addr       // where requests go, while at is not nil
	going      netip.Addr       // address that it moves to when no request to it is open; invalid: it does not move
	at         *group           // its group, while documents are held or a request is open; else nil
	where      *group           // the record of addr, while at is not nil; nil: it is in a shared network
	groups     []*group         // all groups that it may ever have been in
	// the rules' group that it joins when no request to it is open; if late is set, also the one it
	// is in
	to       *group
	over     *group // the address or the network that its last request counts for
	toOver   *group // the one that its open requests count for, too, as it is to be there
	held     int
	fetching int           // fetches of its origins' robots.txt that have not ended
	delay    time.Duration // Crawl-delay
	delayAt  time.Duration // since when delay holds
	longest  time.Duration // longest delay so far
	blocked  [2]time.Duration
	stays    uint32          // counts how often it entered a group
	slowIn   uint32          // value of stays when its Crawl-delay was last added to its group
	requests []time.Duration // only if late is set: moment.since of each request
	ended    []time.Duration // only if late is set: ends of requests
	batch    time.Duration   // only if late is set: when the document of the last request was taken
}

// stay is a host's membership of a group, or its time at an address. It is over when the host has
// left, also if the host has entered again.
type stay struct {
	host *host
	n    uint32
}

func (s stay) over(g *group) bool {
	return s.host.at != g && s.host.where != g || s.host.stays != s.n
}

// group is an address, a rule's group, a site on a shared network, or a shared network.
type group struct {
	level
	kind    groupKind
	addr    netip.Addr    // of an address
	joining int           // open requests to hosts that are to join it; if late is set, also to hosts that are in it
	nearing int           // of an address or a network: open requests to hosts that are to be there
	held    int           // held documents of its hosts
	longest time.Duration // longest Crawl-delay of any host that may have been in it
	slow    []stay        // hosts with a Crawl-delay, and some stays that are over
	bound   []stay        // hosts in it, and some stays that are over
	since   time.Duration // only if late is set: moment.since of its last request
	failed  []failure     // of an address: the last failure of each site, the last site last
	success time.Duration // of an address: the last success of any of its sites
}

type groupKind uint8

const (
	ofAddress groupKind = iota
	ofRule              // a rule gives it its name
	ofSite              // a site on a shared network
	ofNetwork
)

// failure is an answer of 429 or 503.
type failure struct {
	site *level
	at   time.Duration
}

type transaction struct {
	id       string
	doc      *document
	host     *host
	target   target
	spider   uint32
	at       time.Duration // when its line came out
	since    time.Duration // last status, or when it was sent; may be earlier than at
	flying   bool          // its line may not be on the wire yet
	maybe    bool          // its status timeout may have passed
	finished bool
	suspect  bool // its document was lost before
}

type silence struct {
	tx *transaction
	at time.Duration
}

type spiderView struct {
	inFlight  int
	heard     time.Duration // last status of an open transaction; negative: none
	stale     time.Duration // last stale status; negative: none
	fetches   fetches
	suspects  int // its documents that were lost with a spider before
	said      said
	mustClose bool           // the daemon has to close its connection
	all       []*transaction // open ones, and some that have ended
	flying    []*transaction
}

func newOracle(set limits, documents int) *oracle {
	return &oracle{
		set: set, docs: make([]document, documents), hosts: map[string]*host{}, origins: map[string]*origin{},
		groups: map[string]*group{}, open: map[string]*transaction{}, used: map[string]uint64{},
		spiders: map[uint32]*spiderView{}, fetches: map[uint32]*robotsFetch{}, ended: map[uint32]struct{}{},
		blockedFetches: map[uint32]*robotsFetch{}, overLimit: map[*group]struct{}{},
		disabledSince: [3]time.Duration{-1, -1, -1},
	}
}

// doc returns the document of a DOC_ID, or nil if there is none.
func (o *oracle) doc(id string) *document {
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil || int(n) >= len(o.docs) {
		return nil
	}
	return &o.docs[n]
}

// wrong records a violation, unless one was recorded before.
func (o *oracle) wrong(rule Rule, format string, args ...any) {
	if o.complaint == nil {
		o.complaint = &Complaint{Rule: rule, At: o.now, Text: fmt.Sprintf(format, args...)}
	}
}

// setClocks sets the virtual time and the wall clock.
func (o *oracle) setClocks(now time.Duration, wall time.Time) { o.now, o.wall = now, wall }

func (o *oracle) host(name string) *host {
	h := o.hosts[name]
	if h == nil {
		h = &host{level: level{name: strings.Clone(name)}}
		o.hosts[h.name] = h
	}
	return h
}

// group returns the rules' group with a name.
func (o *oracle) group(name string) *group { return o.groupNamed("group "+name, ofRule) }

// address returns the record of an address.
func (o *oracle) address(addr netip.Addr) *group {
	a := o.groupNamed(addr.String(), ofAddress)
	a.addr = addr
	return a
}

func (o *oracle) groupNamed(name string, kind groupKind) *group {
	g := o.groups[name]
	if g == nil {
		g = &group{level: level{name: name}, kind: kind}
		o.groups[name] = g
	}
	return g
}

// origin returns the origin of a URL in serialised form. It adds the origin if it is new.
func (o *oracle) origin(url string) *origin {
	key := url[:targetAt(url)]
	if found := o.origins[key]; found != nil {
		return found
	}
	h := o.host(hostOf(key))
	made := &origin{host: h}
	h.origins = append(h.origins, made)
	o.origins[strings.Clone(key)] = made
	return made
}

// targetAt returns the index at which path and query begin in a URL.
func targetAt(url string) int {
	authority := strings.Index(url, "://") + len("://")
	if i := strings.IndexByte(url[authority:], '/'); i >= 0 {
		return authority + i
	}
	return len(url)
}

// hostOf returns the host of an origin, without brackets.
func hostOf(origin string) string {
	_, name, _ := strings.Cut(origin, "://")
	if v6, ok := strings.CutPrefix(name, "["); ok {
		name, _, _ = strings.Cut(v6, "]")
		return name
	}
	name, _, _ = strings.Cut(name, ":")
	return name
}

// Reasons why nothing is sent.
const (
	paused = iota
	backpressure
	stopped
)

func (o *oracle) disable(reason int, on bool) {
	o.disabledSince[reason] = -1
	if on {
		o.disabledSince[reason] = o.now
	}
}

// block records that a host is blocked until a moment. A moment in the past ends the block.
func (o *oracle) block(name string, until time.Duration) {
	h := o.host(name)
	h.blocked = [2]time.Duration{o.now, until}
	o.endBlocked(h)
}

// resolved records the result of a look-up that the daemon gets.
func (o *oracle) resolved(name string, addr netip.Addr, err error) {
	h := o.host(name)
	if isDown(err) {
		return // no name server answered
	}
	forNow := err != nil && err != errNoAddress
	if forNow && (!h.failed || h.none) {
		h.failing, h.failedAt = o.answers, o.now
	}
	if !forNow { // else the daemon may use the address of the look-up before, see isCurrent
		h.resolvedTo = addr
	}
	h.failed, h.none = err != nil, err != nil && !forNow
	switch {
	case forNow: // it may be looked up again
		o.mayGiveUp(h)
		return
	case err != nil:
		o.endUnresolved(h)
		return
	}
	h.knows(o.groupOf(h, addr))
	if h.at != nil && o.late == nil {
		h.going = addr
		o.movers = append(o.movers, h)
	}
	o.endBlocked(h)
}

// looksUp records that the daemon looks up a host's name; lookedUp records that it has the answer.
func (o *oracle) looksUp(name string) { o.host(name).lookups++ }

func (o *oracle) lookedUp(name string) {
	h := o.host(name)
	h.lookups--
	h.fresh = true
}

// staysMost is how long the daemon may use a host's address after a temporary failure of a look-up.
const staysMost = 30 * time.Second

// holds records until when the last answer about a host is valid. After a failure the daemon may
// use the old address for staysMost.
func (o *oracle) holds(name string, until time.Duration, err error) {
	if err != nil {
		until = o.now + staysMost
	}
	o.host(name).until = until
}

// isCurrent checks that the daemon has looked up a host again whose address has outlived its TTL,
// before it sends a document of the host. While a look-up is running, the daemon may send. It may
// use an answer once, however short its TTL is.
func (o *oracle) isCurrent(h *host, since time.Duration) {
	if h.until > 0 && h.until <= since && h.lookups == 0 && !h.fresh {
		o.wrong(RuleAddress, "%s is asked at %v; its TTL ended at %v, and it was not looked up since",
			h.name, h.addr, h.until)
	}
	h.fresh = false
}

// bind records the address that a request goes to, and returns its group. It checks that the
// address is that of the last look-up, and that a host with held documents or open requests moves
// only when no request to it is open.
func (o *oracle) bind(h *host, addr netip.Addr) *group {
	if h.going.IsValid() {
		o.rehome(h)
	}
	g := o.groupOf(h, addr)
	if h.at == g && h.addr == addr {
		return g
	}
	if h.at != nil { // else it has no work and may move
		for _, from := range h.origins { // a host that moves has no other fetch of its robots.txt open
			o.abandoned(from)
		}
	}
	switch {
	case h.at != nil:
		o.wrong(RuleAddress,
			"%s is asked at %v, in group %s, and has open or held documents at %v, in group %s", h.name,
			addr, g.name, h.addr, h.at.name)
	// While documents are held, a redirect may lead to the old address.
	case h.resolvedTo != addr && !(h.none && h.held > 0):
		o.wrong(RuleAddress, "%s is asked at %v; its last address was %v", h.name, addr, h.resolvedTo)
	}
	o.enter(h, g, addr)
	return g
}

// relocate moves hosts to their new addresses. A line that was sent before the daemon knew the new
// address does not count for the new one. So a host whose answer comes during a step moves when the
// step is over, or with its first line after the answer.
func (o *oracle) relocate() {
	for _, h := range o.movers {
		if h.going.IsValid() {
			o.rehome(h)
		}
	}
	o.movers = o.movers[:0]
}

// release removes a host from its group if it has no held documents, open requests or fetches of
// robots.txt.
func (o *oracle) release(h *host) {
	if h.held == 0 && h.open == 0 && h.fetching == 0 {
		h.at, h.where, h.going = nil, nil, netip.Addr{}
	}
}

// addHeld adds n documents to a group.
func (o *oracle) addHeld(g *group, n int) {
	g.held += n
	if g.held > o.set.rejectOver {
		o.overLimit[g] = struct{}{}
		return
	}
	delete(o.overLimit, g)
}
