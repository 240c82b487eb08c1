package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"urlserver/docindex"
	"urlserver/internal/robots"
	"urlserver/urlserver/engine"
)

// Report is what happened in a run.
type Report struct {
	Virtual     time.Duration // how long it lasted
	Steps       int           // of the engine
	Taken       int           // candidates that the daemon took; a document counts each time
	Lines       int           // to spiders
	Retries     int           // lines for a document that was sent before
	Fetches     int           // requests for robots.txt
	Outcomes    [docindex.Kinds]int
	Served      int           // documents of hosts without trouble that have ended
	LongestWait time.Duration // that one of them waited beyond the time that its group's pace takes
	Stats       engine.Stats  // at the end
	Trace       uint64        // hash of all that came out of the daemon, and when
}

// run is the state of a simulation. It uses one goroutine and no real time.
type run struct {
	sc     *Scenario
	rng    *rand.Rand
	now    time.Duration
	start  time.Time     // by the wall clock
	drift  time.Duration // of the wall clock
	wake   time.Duration // when the engine wants to step; negative: not before an event
	events eventQueue
	engine *engine.Engine
	life   int           // counts the engines
	born   time.Duration // when engine was started
	kept   kept
	policy robots.Policy // of the client that fetches robots.txt
	oracle *oracle
	world  *world
	trace  trace

	names   names
	index   docIndex
	notes   notes
	outbox  *outbox
	spiders []*spider
	conns   map[uint32]*conn
	stalls  bool // writes may take long, so that the oracle sees lines late

	ended func(doc uint32) // is called for each outcome of a document; nil: nothing is

	did   work // in the last step
	event bool // an event has run since the last step
	again bool // the engine got input while flush carried out its work
	idle  int  // consecutive steps without cause or effect
}

// Run runs a scenario to its end. The error is a *Failure if the daemon broke a rule.
func Run(sc Scenario) (Report, error) {
	r := newRun(sc)
	if r.work(); r.oracle.complaint == nil && !sc.Stop {
		r.oracle.allEnded()
	}
	report := r.oracle.report
	report.Virtual, report.Trace, report.Steps, report.Stats = r.now, r.trace.hash, r.trace.steps, r.engine.Stats()
	if r.oracle.complaint != nil {
		return report, &Failure{Scenario: sc, Complaint: *r.oracle.complaint}
	}
	return report, nil
}

// newRun builds the world of a scenario and adds its first events.
func newRun(sc Scenario) *run {
	r := &run{
		sc: &sc, rng: rand.New(rand.NewPCG(sc.Seed, 3)), world: newWorld(&sc), stalls: sc.Trouble.Stall > 0,
		start:  time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		oracle: newOracle(limitsOf(sc.Config, sc.Exact), sc.Documents), conns: map[uint32]*conn{},
		notes: notes{},
	}
	r.oracle.unseen = r.stalls
	r.kept = newKept(sc.Hosts)
	r.startEngine()
	c := &sc.Config.Robots
	r.policy = robots.Policy{Agent: c.UserAgent, TTL: c.TTL, ErrorTTL: c.ErrorTTL, MaxCrawlDelay: c.MaxCrawlDelay}
	r.names = names{known: make([]answer, sc.Hosts)}
	if sc.Crawls > 0 {
		r.index = newScopedIndex(r)
	} else {
		r.index = newIndex(r)
	}
	r.outbox = &outbox{run: r}
	if sc.Served {
		r.serve()
	}
	r.startSpiders()
	r.startOperator()
	r.startDNS()
	r.every(func() time.Duration { return sc.Trouble.Restart }, r.restart)
	r.plan(sc.Heal, r.heal)
	r.plan(sc.End, func() {})
	return r
}

// work runs events in order until the run is over or the oracle complains.
func (r *run) work() {
	for r.oracle.complaint == nil && !r.over() {
		at, ok := r.events.next()
		if r.wake >= 0 && (!ok || r.wake < at) {
			at, ok = r.wake, true
		}
		if !ok || at > r.sc.Last {
			r.oracle.wrong(RuleProgress,
				"%d documents held, %d not ended, and nothing more happens until %v", r.oracle.held,
				r.index.unfinished(), r.sc.Last)
			return
		}
		if r.chance(probes) && at-r.now > time.Millisecond {
			r.probe(at)
			continue
		}
		r.advance(at)
		r.happen()
		r.step()
	}
}

// happen runs the events that are due. Sometimes the engine steps between two of them.
func (r *run) happen() {
	for at, ok := r.events.next(); ok && at <= r.now; at, ok = r.events.next() {
		r.events.take()()
		r.event = true
		if r.rng.IntN(4) == 0 {
			r.step()
		}
	}
}

// probe steps the engine before the time that it asked for and before the next event. The step must
// do nothing.
func (r *run) probe(before time.Duration) {
	r.advance(r.now + 1 + time.Duration(r.rng.Int64N(int64(before-r.now-1))))
	r.step()
	if r.did != (work{}) {
		r.oracle.wrong(RuleSleep, "work was left undone until %v: %+v", before, r.did)
	}
}

// over reports whether the run has ended.
func (r *run) over() bool {
	if r.now < r.sc.End {
		return false
	}
	if r.sc.Stop {
		return r.engine.InFlight() == 0
	}
	return r.index.unfinished() == 0 && r.oracle.held == 0 && r.outbox.waiting() == 0
}

// heal ends all trouble.
func (r *run) heal() {
	said := r.sc.Trouble.Room > 0
	r.sc.Trouble = Trouble{}
	for _, s := range r.spiders {
		s.habit = healthy
		if said {
			s.send(fmt.Sprintf("ROOM %d\n", anyRoom))
		}
	}
	if r.sc.Config.Rules != nil { // else documents of blocked hosts would never end
		r.sc.Config.Rules = nil
		r.configure()
	}
	if r.sc.Stop {
		r.engine.Stop()
		r.oracle.disable(stopped, true)
	}
}

// advance sets the clocks of the engine and the oracle.
func (r *run) advance(to time.Duration) {
	if r.oracle.service != nil {
		r.oracle.pass(to-r.now, r.servable())
	}
	r.oracle.answers += max(0, to-max(r.now, r.names.down))
	r.now = to
	wall := r.start.Add(to + r.drift)
	r.engine.Advance(to-r.born, wall)
	r.oracle.setClocks(to, wall)
}

// plan adds an event at a time; after adds one after a pause.
func (r *run) plan(at time.Duration, do func())    { r.events.add(max(at, r.now), do) }
func (r *run) after(wait time.Duration, do func()) { r.events.add(r.now+wait, do) }

// every calls do at random times until mean returns 0. mean returns the mean pause.
func (r *run) every(mean func() time.Duration, do func()) {
	m := mean()
	if m == 0 {
		return
	}
	r.after(time.Duration(r.rng.ExpFloat64()*float64(m)).Truncate(time.Millisecond), func() {
		if mean() == 0 {
			return
		}
		do()
		r.every(mean, do)
	})
}

// chance returns true with the given probability.
func (r *run) chance(share float64) bool { return share > 0 && r.rng.Float64() < share }

// between returns a random duration in whole milliseconds, so that some events coincide.
func (r *run) between(least, most time.Duration) time.Duration {
	return least + time.Duration(r.rng.Int64N(int64((most-least)/time.Millisecond)+1))*time.Millisecond
}
