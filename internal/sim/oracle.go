package sim

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// oracle watches the daemon from outside. Its methods tell it, in order, what
// goes in and what comes out; complaint is the first thing wrong.
type oracle struct {
	set       limits
	now       time.Duration
	wall      time.Time
	complaint *Complaint

	docs      []document // by DOC_ID, which is a number here
	hosts     map[string]*host
	origins   map[string]*origin
	groups    map[string]*group // by address or name
	open      map[string]*transaction
	used      map[string]uint64 // by TRANS_ID without its generation: the last one
	spiders   map[uint32]*spiderView
	silences  []silence      // by time
	ages      []*transaction // by time
	trips     map[uint32]*trip
	ended     map[uint32]struct{} // trips
	turned    map[uint32]*trip    // of them: those that were turned away
	heavy     map[*group]struct{} // with more documents than limits.rejectOver
	answered  int                 // documents with DONE and no outcome yet
	held      int
	arrivals  uint32
	unseen    bool             // lines may be lost before the oracle sees them
	suspected int              // documents held that were lost with a spider
	lostAt    time.Duration    // when a connection was lost last
	muteSince [3]time.Duration // by reason; negative: not
	movers    []*host          // that are to be asked elsewhere
	asking    bool
	asks      int
	judging   bool          // a question about robots.txt has no answer yet
	judgesAt  time.Duration // no question about robots.txt before
	ruledAt   time.Duration // when settings changed last
	slowest   time.Duration // the longest gap that settings ever asked for
	answers   time.Duration // for so long some name server has answered, as most do
	figures   Report
	late      *late    // nil: each thing is heard of when it is done
	service   *service // nil: it does not matter how long documents take
}

// document is what the oracle knows of a DOC_ID.
type document struct {
	origin   *origin
	url      uint64 // hash of its URL
	tx       *transaction
	taken    time.Duration
	ended    time.Duration
	arrival  uint32
	priority int32
	sends    uint8 // that count as attempts
	company  int   // young documents that were lost together with it, and itself
	lasted   bool  // it was lost after its spider had worked at it for a status timeout
	lost     bool  // it was, with its spider
	alone    bool  // the last time by itself
	sent     bool
	held     bool
	ever     bool // has ended before
	answered bool
	judged   bool // a verdict on it was made aside, and not used yet
	invalid  bool
	code     int16
}

// origin is scheme, host and port.
type origin struct {
	host  *host
	trip  uint32 // the last one
	lanes []lane
	paid  time.Duration // no question about its documents before
	robotsState
}

// lane is an origin's documents of one priority that were never sent, in the
// order in which they were taken.
type lane struct {
	priority int32
	docs     []arrival
}

type arrival struct {
	doc     *document
	arrival uint32
}

type host struct {
	name     string
	origins  []*origin
	told     netip.Addr       // last answer about it; invalid: none, or a failure
	until    time.Duration    // the daemon may take the last answer for true until then; 0: not known
	lookups  int              // of its name, that are under way
	fresh    bool             // a look-up has ended, and no line was sent since
	failed   bool             // last answer about it
	none     bool             // it was that there is no address
	failedAt time.Duration    // the first of the failures in a row
	failing  time.Duration    // of the time in which name servers answer: since when each answer was a failure for now
	givenUp  [2]time.Duration // the first and the last failure after which the daemon may have given the name up
	addr     netip.Addr       // asked, while at is not nil
	going    netip.Addr       // where it is to be asked when no request to it is open; invalid: where it is
	at       *group           // while documents are held or a request is open; nil: not seen yet
	groups   []*group         // it was ever told to be in
	to       *group           // that it is to join when no request to it is open; where the oracle is late: or is in; nil: none
	held     int
	trips    int // of its origins, under way
	open     int
	last     time.Duration // last request
	floor    time.Duration // no request before
	delay    time.Duration // Crawl-delay
	delayAt  time.Duration // since when
	longest  time.Duration // it ever was
	blocked  [2]time.Duration
	stays    uint32          // counts how often it came to a group
	slowIn   uint32          // of them: the last in which its Crawl-delay was noted
	asked    []time.Duration // where the oracle is late: since when each request was really decided on
	ended    []time.Duration // where the oracle is late: ends of requests
	batch    time.Duration   // where the oracle is late: when the document of the last request was taken
}

// stay is a host's membership of a group; it is over when the host has gone,
// or come again.
type stay struct {
	host *host
	n    uint32
}

func (s stay) over(g *group) bool { return s.host.at != g || s.host.stays != s.n }

type group struct {
	name    string
	open    int
	joining int // open requests to hosts that are to join it; where the oracle is late: or are in it
	asked   bool
	held    int // documents of hosts at it
	last    time.Duration
	floor   time.Duration // no request before
	took    time.Duration // by the last fetch that came to an end
	tookAt  time.Duration // its end
	backoff time.Duration // gap while backing off
	longest time.Duration // Crawl-delay of any host that may have been in it
	work    time.Duration // that all requests to it take at its pace
	slow    []stay        // those with a Crawl-delay, and some that are over
	bound   []stay        // those that are at it, and some that are over
	since   time.Duration // where the oracle is late: since when its last request was really decided on
}

type transaction struct {
	id       string
	doc      *document
	host     *host
	group    *group
	spider   uint32
	at       time.Duration // its line came out
	since    time.Duration // no status since; may be earlier than at
	flying   bool          // its line may not be on the wire
	maybe    bool          // it may be silent for too long already
	finished bool
	suspect  bool // its document was lost before
}

type silence struct {
	tx *transaction
	at time.Duration
}

type spiderView struct {
	inFlight  int
	heard     time.Duration // last status of what it has; negative: none
	stale     time.Duration // last one of what it had, or never had; negative: none
	fetches   fetches
	suspects  int            // documents there that were lost with a spider
	condemned bool           // its connection has to end
	all       []*transaction // open ones, and some that are not
	flying    []*transaction
}

func newOracle(set limits, documents int) *oracle {
	return &oracle{
		set: set, docs: make([]document, documents), hosts: map[string]*host{}, origins: map[string]*origin{},
		groups: map[string]*group{}, open: map[string]*transaction{}, used: map[string]uint64{},
		spiders: map[uint32]*spiderView{}, trips: map[uint32]*trip{}, ended: map[uint32]struct{}{}, turned: map[uint32]*trip{}, heavy: map[*group]struct{}{},
		muteSince: [3]time.Duration{-1, -1, -1},
	}
}

// doc returns what is known of a DOC_ID; nil: there is no such document.
func (o *oracle) doc(id string) *document {
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil || int(n) >= len(o.docs) {
		return nil
	}
	return &o.docs[n]
}

// wrong complains, unless something was wrong before.
func (o *oracle) wrong(rule Rule, format string, args ...any) {
	if o.complaint == nil {
		o.complaint = &Complaint{Rule: rule, At: o.now, Text: fmt.Sprintf(format, args...)}
	}
}

// tell says what time it is.
func (o *oracle) tell(now time.Duration, wall time.Time) { o.now, o.wall = now, wall }

func (o *oracle) host(name string) *host {
	h := o.hosts[name]
	if h == nil {
		h = &host{name: strings.Clone(name)}
		o.hosts[h.name] = h
	}
	return h
}

func (o *oracle) group(name string) *group {
	g := o.groups[name]
	if g == nil {
		g = &group{name: name}
		o.groups[name] = g
	}
	return g
}

// origin finds the origin of a URL in serialised form.
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

// targetAt is where path and query begin in a URL.
func targetAt(url string) int {
	authority := strings.Index(url, "://") + len("://")
	if i := strings.IndexByte(url[authority:], '/'); i >= 0 {
		return authority + i
	}
	return len(url)
}

// hostOf is the host of an origin, without brackets.
func hostOf(origin string) string {
	_, name, _ := strings.Cut(origin, "://")
	if v6, ok := strings.CutPrefix(name, "["); ok {
		name, _, _ = strings.Cut(v6, "]")
		return name
	}
	name, _, _ = strings.Cut(name, ":")
	return name
}

// Reasons to send nothing at all.
const (
	paused = iota
	choked
	stopped
)

func (o *oracle) mute(reason int, on bool) {
	o.muteSince[reason] = -1
	if on {
		o.muteSince[reason] = o.now
	}
}

// block says that a host is blocked until a moment; one that is past: no more.
func (o *oracle) block(name string, until time.Duration) {
	h := o.host(name)
	h.blocked = [2]time.Duration{o.now, until}
	o.turnAway(h)
}

// resolved hears what the daemon is told of a host's address.
func (o *oracle) resolved(name string, addr netip.Addr, err error) {
	h := o.host(name)
	if isDown(err) {
		return // that says nothing of the name
	}
	forNow := err != nil && err != errNoAddress
	if forNow && (!h.failed || h.none) {
		h.failing, h.failedAt = o.answers, o.now
	}
	if !forNow || h.held == 0 || !h.told.IsValid() { // else what is held keeps the address that it was told of before
		h.told = addr
	}
	h.failed, h.none = err != nil, err != nil && !forNow
	switch {
	case forNow: // it may be looked up again
		o.mayGiveUp(h)
		return
	case err != nil:
		o.stranded(h)
		return
	}
	h.knows(o.groupOf(h, addr))
	if h.at != nil && o.late == nil {
		h.going = addr
		o.movers = append(o.movers, h)
	}
	o.turnAway(h)
}

// looksUp hears that the daemon looks a host's name up; lookedUp, that it has the answer.
func (o *oracle) looksUp(name string) { o.host(name).lookups++ }

func (o *oracle) lookedUp(name string) {
	h := o.host(name)
	h.lookups--
	h.fresh = true
}

// staysMost is how long the daemon may keep to a host's address after the name has failed for now.
const staysMost = 30 * time.Second

// holds hears until when the last answer about a host holds. After a failure the host may stay where it is for a while.
func (o *oracle) holds(name string, until time.Duration, err error) {
	if err != nil {
		until = o.now + staysMost
	}
	o.host(name).until = until
}

// isCurrent checks that the address of a host whose document is sent was looked up again once its TTL had passed. A look-up
// that is under way does not hold the document up for long, and its answer may be used once, however short it holds.
func (o *oracle) isCurrent(h *host, since time.Duration) {
	if h.until > 0 && h.until <= since && h.lookups == 0 && !h.fresh {
		o.wrong(RuleAddress, "%s is asked at %v; its TTL ended at %v, and it was not looked up since", h.name, h.addr, h.until)
	}
	h.fresh = false
}

// bind notes where a host is asked, and checks that it goes where it was told to: while it has something to do,
// when no request to it is open.
func (o *oracle) bind(h *host, addr netip.Addr) *group {
	if h.going.IsValid() {
		o.rehome(h)
	}
	g := o.groupOf(h, addr)
	if h.at == g && h.addr == addr {
		return g
	}
	if h.at != nil { // else nothing keeps it where it was
		for _, from := range h.origins { // as it is asked elsewhere, no other fetch of its robots.txt is under way
			o.abandoned(from)
		}
	}
	switch {
	case h.at != nil:
		o.wrong(RuleAddress, "%s is asked at %v, in group %s, and has open or held documents at %v, in group %s", h.name, addr, g.name, h.addr, h.at.name)
	case h.told != addr && !(h.none && h.held > 0): // until its documents have ended a redirect may lead to where it was
		o.wrong(RuleAddress, "%s is asked at %v; its last address was %v", h.name, addr, h.told)
	}
	o.enter(h, g, addr)
	return g
}

// relocate has hosts move that have another address. What was sent before the daemon knew of that does not count for where
// they go, so those of which it hears during a step move when that is over, or with their first line after it.
func (o *oracle) relocate() {
	for _, h := range o.movers {
		if h.going.IsValid() {
			o.rehome(h)
		}
	}
	o.movers = o.movers[:0]
}

// release lets a host move when nothing keeps it.
func (o *oracle) release(h *host) {
	if h.held == 0 && h.open == 0 && h.trips == 0 {
		h.at, h.going = nil, netip.Addr{}
	}
}

// weigh adds n documents to a group.
func (o *oracle) weigh(g *group, n int) {
	g.held += n
	if g.held > o.set.rejectOver {
		o.heavy[g] = struct{}{}
		return
	}
	delete(o.heavy, g)
}
