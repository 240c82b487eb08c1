package engine

import (
	"net/netip"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/robots"
)

// Options is what an engine needs besides the settings.
type Options struct {
	// Cached answers a look-up from memory. ok is false if the name has to be looked up
	// (Out.Lookups).
	Cached func(host []byte) (addr netip.Addr, err error, ok bool)
	// CachedFor returns how long Cached will go on to give the address that it has for a host; 0
	// if it has none. If it is nil, Cached is asked each time.
	CachedFor func(host []byte) time.Duration
	// ForNow reports whether a look-up failed for now, as by SERVFAIL or a timeout: the name is
	// looked up again. Other failures are final. If it is nil, all failures are.
	ForNow func(err error) bool
	// Down reports whether a look-up failed because no name server can be reached. Such a failure
	// is for now, and does not count against the name. May be nil.
	Down func(err error) bool
	// Refused reports whether a look-up failed because the host has addresses, and none may be
	// requested. May be nil.
	Refused func(err error) bool
	// Own reports whether an address belongs to this machine now and must not be requested. May be
	// nil.
	Own func(netip.Addr) bool
	// Generation of the first transactions. It must differ from start to start.
	Generation uint32
	// Exact: the index knows what it has given out and what has ended, as an embedded index does.
	// So it never offers an ended document by mistake.
	Exact bool
	// Notes: the index keeps notes of robots.txt and of addresses (Out.NoteRequests).
	Notes bool
	// Backoffs are how addresses backed off before the start.
	Backoffs []hostslots.AddressBackoff
	// Pauses are the hosts that are to be left alone since before the start. The index gives no
	// document of them, but another host's robots.txt may redirect there, and a host may be one
	// site with others.
	Pauses []Pause
	// Shared: the index gives documents to others, too, and takes unsent ones back (Out.Returns).
	// While no spider takes documents, the engine gives all back.
	Shared bool
	// GoneGrace is how long the slots keep their documents after the last spider has gone, as it may
	// connect again.
	GoneGrace time.Duration
	// Lease is the length of the leases if daemons share a reservation: a group is requested only
	// while it is leased (Out.Leases). 0: they do not share one.
	Lease time.Duration
	// ClientsLack reports whether URL Frontier clients of this daemon wait for the lease of a group,
	// and whether they have URLs of it without the lease. May be nil.
	ClientsLack func(leaseHost string) (waits, open bool)
	// Counted: the reservation counts the documents that are held (LeaseBatch.Reports).
	Counted bool
	// Crawls: outcomes name the crawls of their documents.
	Crawls bool
}

// Pause is until when a host is to be left alone: time since the start.
type Pause struct {
	Host  string
	Until time.Duration
}

// Out is work for others. The engine's owner takes it out and empties it after each Step.
type Out struct {
	Lookups      []string                   // host names; each answer goes to Resolved
	Fetches      []Fetch                    // of robots.txt; each answer goes to Fetched
	Question     *Question                  // about robots.txt that takes time; the answer goes to Judged; nil: none
	Ask          *Ask                       // of the doc index; the answer goes to Answered; nil: nothing
	Outcomes     docindex.Outcomes          // for the doc index
	Returns      docindex.Outcomes          // documents for the doc index to take back
	Sitemaps     docindex.Outcomes          // for the doc index to put: Location, by the document DocID
	Pauses       docindex.Outcomes          // what robots.txt requests say of hosts, for the doc index
	NoteRequests []*NoteRequest             // for notes of robots.txt; each answer goes to NoteFound
	Learned      []Learned                  // robots.txt, for the doc index to keep
	Backoffs     []hostslots.AddressBackoff // of addresses, changed; for the doc index to keep
	Leases       *LeaseBatch                // for the reservation; the answer goes to LeasesAnswered; nil: nothing
	Dirty        []uint32                   // spiders with lines in their Output
	Drop         []uint32                   // spiders to hang up on
	Traces       []TraceEnd                 // of sampled documents that have ended or gone back
	Skipped      int                        // sampled documents that are not followed, since too many are
}

// Fetch is one request for a robots.txt.
type Fetch struct {
	ID    uint32
	URL   string
	Addr  netip.Addr
	Start time.Duration // the request must begin by then, when the next request to the address may leave
	By    time.Duration // the request must leave by then, when the group's lease may end; 0: at any time

	Targets [][]byte // paths and queries of documents that wait for it; Policy.Read judges them
}

// Ask is one request for candidates.
type Ask struct {
	Max    int
	Reject []string
}

const (
	stepBudget  = 512                    // documents dealt with a step, so that no step takes long
	intakeStep  = 256                    // candidates taken a step
	clockEvery  = 32                     // sends between two looks at the clock
	stall       = time.Second            // a step that is so late says that the daemon stood still
	hearTime    = 2 * time.Second        // time to read the lines that spiders sent while the daemon stood still
	maxOutput   = 1 << 20                // bytes of lines that wait for a spider's socket
	maxPayloads = 256 << 20              // bytes of payloads held; with more, the index is not asked
	maxBadInRow = 100                    // bad lines in a row that end a spider's connection
	lateAfter   = 200 * time.Microsecond // between a document's sending and its line on the wire
	remember    = 1 << 18                // hosts without documents whose pace and robots.txt are remembered
)

// Engine decides what the daemon does. Its fields are components: a component's methods touch only
// its own fields, and a change that concerns several components is a method of Engine. Use New.
type Engine struct {
	Out Out

	setup
	clock
	slots    *hostslots.Slots
	sending  sending
	intake   intake
	dns      dns
	rules    hostRules
	robots   robotsFetches
	spiders  spiders
	outcomes outcomes
	leases   leases
	tracer   tracer
	stats    Stats
}

// setup has the settings in force, and the options of New.
type setup struct {
	cfg configs.Config
	opt Options
}

// clock is the time that Advance has set.
type clock struct {
	now    time.Duration
	wall   time.Time
	wakeBy time.Duration // when Step is due again at the latest; 0: only after an event
}

// sending says whether documents may be sent, and how late they are.
type sending struct {
	paused, stopping, backpressure bool

	lateness time.Duration // the longest delay of a document since no document was due
}

// New returns an engine for a daemon that has just started: time is 0.
func New(cfg configs.Config, opt Options) *Engine {
	e := &Engine{
		setup:    setup{opt: opt},
		slots:    hostslots.New(slotConfig(cfg, opt)),
		dns:      newDNS(),
		robots:   newRobotsFetches(),
		spiders:  newSpiders(),
		outcomes: newOutcomes(),
		leases:   newLeases(opt),
		tracer:   newTracer(),
		stats:    Stats{Robots: map[string]uint64{}},
	}
	e.apply(cfg)
	for _, p := range opt.Pauses {
		group := e.rules.set.Limits([]byte(p.Host), netip.Addr{}).Group
		e.slots.Host(e.slots.EnsureHost([]byte(p.Host))).RestorePause(group, p.Until)
	}
	return e
}

func slotConfig(cfg configs.Config, opt Options) hostslots.Config {
	return hostslots.Config{
		Count:         cfg.QueueCount,
		Len:           cfg.QueueLen,
		Concurrent:    cfg.ReqHostConcurrent,
		MaxConcurrent: widest(cfg.Rules),
		Gap:           gap(cfg.ReqHostPerSec),

		SiteConcurrent: cfg.SitePace().Concurrent,
		SiteGap:        gap(cfg.SitePace().PerSec),

		StatusTimeout: cfg.TimeoutSpiderStatus,
		MaxFetch:      cfg.Spider.MaxFetch,
		MaxAttempts:   cfg.Spider.MaxAttempts,
		DelayFactor:   cfg.Politeness.DelayFactor,
		MaxDelay:      cfg.Politeness.MaxDelay,
		Patience:      cfg.Politeness.Patience,
		RejectOver:    cfg.VHosts.RejectOver,
		Remember:      remember,
		Generation:    opt.Generation,
		Backoffs:      opt.Backoffs,
		Leases:        opt.Lease > 0,
		CountDocs:     opt.Counted,
		NameCrawls:    opt.Crawls,
	}
}

// Reconfigure puts new settings in force: those that can change while the daemon runs.
func (e *Engine) Reconfigure(cfg configs.Config) {
	if cfg.Robots.UserAgent != e.cfg.Robots.UserAgent { // the rules in memory are for the former one
		e.robots.agent++
		if e.robots.verdicts.out != nil {
			e.robots.verdicts.out.void = true
		}
	}
	e.apply(cfg)
	e.slots.Reconfigure(e.now, slotConfig(cfg, e.opt))
	for id, sp := range e.spiders.byID {
		if sp != nil {
			e.updateSpider(uint32(id), sp)
		}
	}
}

func (e *Engine) apply(cfg configs.Config) {
	e.setRules(cfg)
	e.cfg = cfg
	e.tracer.apply(cfg.Trace)
	e.robots.policy = robots.Policy{
		Agent: cfg.Robots.UserAgent, TTL: cfg.Robots.TTL,
		ErrorTTL: cfg.Robots.ErrorTTL, MaxCrawlDelay: cfg.Robots.MaxCrawlDelay,
	}
}

// Advance sets the time: now since the daemon's start on a monotonic clock, which decides, and the
// wall clock's time, which only dates outcomes. Call it before each round of events.
func (e *Engine) Advance(now time.Duration, wall time.Time) {
	if e.wakeBy > 0 && now-e.wakeBy > stall {
		// The daemon stood still. It first reads what spiders said meanwhile.
		e.slots.IgnoreSilenceUntil(now + hearTime)
	}
	e.wakeBy = now // there is more to do at once
	e.now = max(e.now, now)
	e.wall = wall
}

// Pause pauses sending, or resumes it. Documents in flight are not affected.
func (e *Engine) Pause(paused bool) { e.sending.paused = paused }

// Stop ends sending for good.
func (e *Engine) Stop() { e.sending.stopping = true }

// SetBackpressure stops sending while outcomes cannot be delivered, or resumes it.
func (e *Engine) SetBackpressure(choked bool) { e.sending.backpressure = choked }

func (s *sending) disabled() bool {
	return (s.paused || s.stopping || s.backpressure) && !faulty(FaultSend)
}

// Step does what is due, at most a bounded amount. wait is how long until Step is due again: 0 for
// at once, negative for not before the next event. clock, which may be nil, returns the current
// time during longer steps.
func (e *Engine) Step(clock func() time.Duration) (wait time.Duration) {
	defer func() {
		if e.wakeBy = 0; wait >= 0 {
			e.wakeBy = e.now + wait
		}
	}()
	due := waiter{}
	e.slots.Tick(e.now)
	e.leases.slices.step(e.now, e.slots, e.sending.disabled(), &due)
	budget := stepBudget
	e.trimCache(&budget)
	e.endOverdue(&budget)
	e.requeueLost(&budget)
	e.endHolds(&budget)
	e.applyRules()
	e.takeCandidates()
	e.endFailed(&budget) // what is taken may fail at once
	e.retryLookups(&due)
	e.endSlowChecks(&due)
	e.retryRobots()
	e.endDelays(&due)
	e.returnQueued(&budget)
	e.awaitRoom(&due)
	if !e.sending.disabled() && e.rules.next == 0 && !e.outcomes.recallsQueued {
		e.startRequests(&budget, &waiter{}) // the second call tells how long to wait
		e.send(&budget, &due, clock)
		e.startRequests(&budget, &due) // again: for what send has found without a robots.txt
	}
	e.endSlowChecks(&due) // again: for hosts that send has set aside
	e.askVerdicts(&due)
	e.askIndex(&due)
	e.requestLeases(&due)
	e.forget()
	if _, at, ok := e.robots.retries.Min(); ok {
		due.after(at - e.now)
	}
	if _, until, ok := e.spiders.backs.held.Min(); ok {
		due.after(until - e.now)
	}
	due.after(e.slots.Wait(e.now)) // last: the timeouts of documents sent in this step have begun
	switch {
	case budget <= 0, e.intake.batch != nil, e.rules.next != 0, e.outcomes.recallsQueued,
		!e.sending.disabled() && e.mayResume():
		return 0
	case faulty(FaultSpin):
		return 1
	case faulty(FaultSleep):
		return due.wait() + time.Second
	}
	return due.wait()
}

// waiter finds the soonest of several waits.
type waiter struct {
	least time.Duration
	any   bool
}

// after takes a wait into account; 0 stands for none.
func (w *waiter) after(d time.Duration) {
	if d > 0 && (!w.any || d < w.least) {
		w.least, w.any = d, true
	}
}

func (w *waiter) wait() time.Duration {
	if !w.any {
		return -1
	}
	return w.least
}

// forgetOrigin forgets the robots.txt of an origin.
func (r *robotsFetches) forgetOrigin(id uint32) {
	r.uncacheRules(id)
	*r.origins.At(id) = origin{agent: r.agent}
	delete(r.cache.remembered, id)
	delete(r.verdicts.notBefore, id)
}

// forget drops what is known of the robots.txt of origins that the slots forgot.
func (e *Engine) forget() {
	e.robots.forgotten = e.slots.Forgotten(e.robots.forgotten[:0])
	for _, o := range e.robots.forgotten {
		e.robots.forgetOrigin(o)
		e.robots.retries.Remove(o)
		delete(e.robots.blockedTargets, o)
	}
}
