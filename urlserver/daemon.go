// Package urlserver is the daemon: it joins the engine with spiders' sockets, the
// doc index, the resolver and robots.txt around one owner goroutine.
package urlserver

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/internal/resolver"
	"urlserver/internal/robots"
	"urlserver/internal/trace/otlp"
	"urlserver/urlserver/crawllog"
	"urlserver/urlserver/engine"
)

const (
	stopWait    = 10 * time.Second // how long a stop waits for documents in flight, and then again for outcomes
	eventBuffer = 256              // batches, not lines
	eventBurst  = 4                // events taken before the engine steps
)

// Parts are the components of a daemon. All but Store, Reserver, Traces and CrawlLog are required.
type Parts struct {
	Index    docindex.Source
	Store    Store     // the index if it is embedded, else nil
	Reserver *Reserver // the client of the reservation that daemons share; nil: none
	Resolver *resolver.Resolver
	Traces   *otlp.Exporter // exports sampled traces; nil: none
	CrawlLog *crawllog.Log  // gets all outcomes; nil: none
	Log      zerolog.Logger
}

// Store is what the daemon uses of an embedded index in addition to the Source.
type Store interface {
	docindex.Returner
	docindex.Pauser
	docindex.Notes
	docindex.Hooks
	docindex.Inspector
	docindex.Putter
	docindex.Counter
	Set(ctx context.Context, s docindex.Setting) error
}

// Daemon is a URL server. Use New, then Run. All other methods may be called from any goroutine
// while Run runs.
type Daemon struct {
	parts Parts
	log   zerolog.Logger
	start time.Time

	cfg    atomic.Pointer[configs.Config]
	robots atomic.Pointer[robots.Client]
	policy atomic.Pointer[robots.Policy]

	// Only the owner goroutine, which runs runEngine, uses these.
	engine   *engine.Engine
	sessions map[uint32]*session
	operated map[string]struct{} // hosts blocked or unblocked since the start, until restoreBlocks has ended; then nil
	split    split               // of putOutcomes
	done     chan struct{}       // closed when the owner has ended
	events   chan event

	wakes          chan struct{}
	asks           chan *engine.Ask
	leaseBatches   chan *engine.LeaseBatch
	outbox         *outbox // of outcomes
	redirects      *outbox // of outcomes whose targets an embedded index gets before
	returns        *outbox // of documents for the embedded index to take back
	pauses         *outbox // of hosts, for the embedded index to keep
	sitemaps       *outbox // of robots.txt, for the embedded index to put
	notes          *notebook
	hard           context.Context // ends after the graceful stop
	work           sync.WaitGroup  // requests for robots.txt
	dialing        dialers
	indexErr       atomic.Pointer[string]
	addresses      *clientAddresses // of hosts of queues, for URL Frontier clients
	clientLeases   *clientLeases    // of these; nil: no reservation, or frontier.addresses was off at the start
	namesDown      atomic.Bool      // whether the log says that no name server can be used
	candidateCalls callStats
	badLines       limiter
	refusals       limiter
	mutes          limiter
	giveUps        limiter
	putFailures    limiter
	sitemapDrops   limiter
}

// event is a function that the owner runs.
type event func(e *engine.Engine)

// New returns a daemon with the given settings. Nothing runs yet.
func New(cfg configs.Config, parts Parts) *Daemon {
	d := &Daemon{
		parts:        parts,
		log:          parts.Log,
		start:        time.Now(),
		sessions:     map[uint32]*session{},
		operated:     map[string]struct{}{},
		done:         make(chan struct{}),
		events:       make(chan event, eventBuffer),
		wakes:        make(chan struct{}, 1),
		asks:         make(chan *engine.Ask, 1),
		leaseBatches: make(chan *engine.LeaseBatch, 1),
	}
	var clientsLack func(string) (waits, open bool)
	if parts.Reserver != nil && cfg.Frontier.Addresses {
		d.clientLeases = newClientLeases(parts.Reserver)
		clientsLack = d.clientLeases.lack
		d.clientLeases.released = func(of []engine.Release) {
			d.post(func(e *engine.Engine) { e.LeasesFreed(of) })
		}
		d.clientLeases.moved = func(addrs []string) {
			d.post(func(e *engine.Engine) { e.ClientsMoved(addrs) })
		}
	}
	d.engine = engine.New(cfg, engine.Options{
		Cached:    parts.Resolver.Cached,
		CachedFor: parts.Resolver.CachedFor,
		ForNow:    func(err error) bool { return errors.Is(err, resolver.ErrServers) },
		Down: func(err error) bool {
			return errors.Is(err, resolver.ErrDown) ||
				errors.Is(err, resolver.ErrClosed)
		},
		Refused:     func(err error) bool { return errors.Is(err, resolver.ErrRefused) },
		Own:         parts.Resolver.IsOwn,
		Generation:  rand.Uint32(),
		Exact:       parts.Store != nil,
		Notes:       parts.Store != nil,
		Backoffs:    restoredBackoffs(parts),
		Pauses:      restoredPauses(parts, d.start),
		Shared:      parts.Store != nil && (cfg.Frontier.Listen != "" || cfg.DocIndex.Kind == configs.KindRedis),
		GoneGrace:   goneGrace(&cfg),
		Lease:       parts.Reserver.lease(),
		ClientsLack: clientsLack,
		Counted:     parts.Reserver.counts(),
		Crawls:      parts.CrawlLog != nil,
	})
	d.outbox = newOutbox("outcomes", parts.Index.Outcomes, d.log)
	d.redirects = newOutbox("outcomes of redirects", d.outcomesWithTargets, d.log)
	d.redirects.calls = d.outbox.calls
	for _, o := range []*outbox{d.outbox, d.redirects} {
		o.relieved, o.export = d.updateBackpressure, d.exportTraces
	}
	d.returns = newOutbox("returned documents", d.returnAll, d.log)
	d.pauses = newOutbox("pauses of hosts", d.pauseAll, d.log)
	d.notes = newNotebook(d)
	d.sitemaps = newOutbox("sitemaps of robots.txt", d.putTargets, d.log)
	d.addresses = newClientAddresses(parts.Resolver, d.clientLeases)
	d.configureFetches(&cfg)
	d.configure(cfg)
	if parts.Store != nil {
		parts.Store.OnWake(d.wakeIndex)
		parts.Store.OnRecall(d.recall)
	}
	return d
}

func (d *Daemon) configure(cfg configs.Config) {
	d.cfg.Store(&cfg)
	for _, o := range d.outboxes() {
		o.configure(cfg.DocIndex)
	}
	if d.parts.Store != nil {
		d.configureStore(&cfg)
	}
}

// configureStore sets what the index keeps for URL Frontier clients.
func (d *Daemon) configureStore(cfg *configs.Config) {
	slowest := min(cfg.AddressPace().PerSec, cfg.SitePace().PerSec)
	d.parts.Store.SetSlotGap(time.Duration(float64(time.Second) / slowest))
	d.parts.Store.SetHostRules(rulesByName(cfg))
	d.parts.Store.SetBudget(cfg.Crawl.Budget)
	d.parts.Store.SetAhead(ahead(cfg))
	if !cfg.Frontier.Addresses {
		d.parts.Store.SetAddresses(nil)
		d.clientLeases.closeAll()
		return
	}
	d.addresses.configure(cfg)
	d.parts.Store.SetAddresses(d.addresses.of)
}

// goneGrace returns how long the daemon keeps documents after its last spider has gone. With an
// index in Redis the daemon returns them after that for other daemons, and a spider that connects
// again would have to wait for new ones.
func goneGrace(cfg *configs.Config) time.Duration {
	if cfg.DocIndex.Kind == configs.KindRedis {
		return 5 * time.Second
	}
	return 0
}

// ahead returns how many documents the slots take of queues and domains that take turns. Of a queue
// they take the documents of the open requests that a site may have, and as many again, at least 8.
// Of a domain they take eight for each request that all slots may have open, so that the index is
// not asked for each; of a domain over its budget one.
func ahead(cfg *configs.Config) docindex.Ahead {
	const waiting = 8
	open := max(cfg.AddressPace().Concurrent, cfg.SitePace().Concurrent)
	for _, r := range cfg.Rules {
		open = max(open, r.Concurrent, r.SiteConcurrent)
	}
	all := open * cfg.QueueCount
	return docindex.Ahead{
		Queue: open + max(waiting, open), Domain: max(cfg.VHosts.RejectOver, waiting*all), Waiting: all,
	}
}

// configureFetches puts new settings for robots.txt in force. The owner does it together with the
// engine, so that a fetch that the engine wants for a new user agent is not made for the old one.
func (d *Daemon) configureFetches(cfg *configs.Config) {
	d.robots.Store(robots.NewClient(robots.ClientConfig{
		UserAgent: cfg.Robots.UserAgent, Timeout: cfg.Robots.Timeout, MaxSize: cfg.Robots.MaxSize,
	}))
	d.policy.Store(&robots.Policy{Agent: cfg.Robots.UserAgent})
}

// rulesByName returns the look-up of rules for an index, which does not know addresses: by host
// name only.
func rulesByName(cfg *configs.Config) func(host []byte) docindex.HostRule {
	everySite := cfg.Politeness.SitePerSec
	if len(cfg.Rules) == 0 && everySite == 0 {
		return nil
	}
	rules := cfg.RuleSet()
	return func(host []byte) docindex.HostRule {
		l := rules.Limits(host, netip.Addr{})
		rule := docindex.HostRule{Barred: l.Block}
		if perSec := cmp.Or(l.Site.PerSec, everySite); perSec > 0 {
			rule.Gap = gapMS(perSec)
		}
		return rule
	}
}

// Run runs the daemon until ctx ends. Then it stops gracefully: it sends nothing more, waits for
// the documents in flight and delivers the outcomes. Spiders connect to listener, if it is not nil;
// Run closes it.
func (d *Daemon) Run(ctx context.Context, listener net.Listener) error {
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	d.hard = hard
	var helpers sync.WaitGroup
	helpers.Go(func() { d.askIndex(hard) })
	for _, o := range d.outboxes() {
		helpers.Go(func() { o.run(hard) })
	}
	if d.parts.Store != nil {
		helpers.Go(func() { d.notes.run(hard) })
	}
	helpers.Go(func() { d.reserve(hard) })
	helpers.Go(func() { d.restoreBlocks(hard) })
	if d.clientLeases != nil {
		helpers.Go(func() { d.clientLeases.run(hard) })
	}
	d.dialing = dialers{dial: func(ctx context.Context, addr string) { d.dial(ctx, addr) }}
	d.dialing.start(hard, d.cfg.Load().SpiderAddrs())
	var accepting sync.WaitGroup
	if listener != nil {
		accepting.Go(func() { d.accept(hard, listener) })
	}
	d.runEngine(ctx)
	err := d.drain()
	cut()
	if listener != nil {
		err = errors.Join(err, ignoreClosed(listener.Close()))
	}
	d.dialing.stop()
	accepting.Wait()
	helpers.Wait()
	d.work.Wait()
	return err
}

// outboxes are all that the daemon delivers to the doc index.
func (d *Daemon) outboxes() [5]*outbox {
	return [...]*outbox{d.outbox, d.redirects, d.returns, d.pauses, d.sitemaps}
}

// drain delivers to the doc index what waits in the outboxes, for stopWait at most.
func (d *Daemon) drain() error {
	var errs [5]error
	var all sync.WaitGroup
	for i, o := range d.outboxes() {
		all.Go(func() { errs[i] = o.drain(stopWait) })
	}
	all.Wait()
	return errors.Join(errs[:]...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// runEngine is the owner goroutine: it alone uses the engine and the map of sessions, and sets the
// engine's clock. It returns when the daemon has stopped.
func (d *Daemon) runEngine(ctx context.Context) {
	defer close(d.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopping, deadline := ctx.Done(), time.Time{}
	for {
		select {
		case ev := <-d.events:
			d.drainEvents(ev)
		case <-d.wakes:
			d.advance().WakeIndex()
		case <-timer.C:
			d.advance()
		case <-stopping:
		}
		if stopping != nil && ctx.Err() != nil { // before the next step, so that nothing more is sent
			d.advance().Stop()
			stopping, deadline = nil, time.Now().Add(stopWait)
		}
		wait := d.engine.Step(d.clock)
		d.flush()
		if stopping == nil {
			left := time.Until(deadline)
			if left <= 0 || d.engine.InFlight() == 0 {
				return
			}
			wait = atMost(wait, left)
		}
		arm(timer, wait)
	}
}

// atMost returns the shorter of two waits; a negative wait is endless.
func atMost(wait, most time.Duration) time.Duration {
	if wait < 0 || wait > most {
		return most
	}
	return wait
}

func arm(timer *time.Timer, wait time.Duration) {
	if wait < 0 {
		timer.Stop()
		return
	}
	timer.Reset(wait)
}

// drainEvents runs an event and some that wait behind it. It advances the clock before each one, so
// that a line does not count as sent before it was written.
func (d *Daemon) drainEvents(ev event) {
	ev(d.advance())
	for range eventBurst {
		select {
		case ev = <-d.events:
			ev(d.advance())
		default:
			return
		}
	}
}

// clock is the time since the start, on the monotonic clock.
func (d *Daemon) clock() time.Duration { return time.Since(d.start) }

// advance sets the engine's clock and returns the engine. Only the owner calls it.
func (d *Daemon) advance() *engine.Engine {
	now := time.Now()
	d.engine.Advance(now.Sub(d.start), now)
	return d.engine
}

// post queues an event for the owner. It blocks while the queue is full, and returns false if the
// owner has ended.
func (d *Daemon) post(ev event) bool {
	select {
	case d.events <- ev:
		return true
	case <-d.done:
		return false
	}
}

// ask posts an event and waits until the owner has run it. After an error the event may still run.
func (d *Daemon) ask(ctx context.Context, ev event) error {
	finished := make(chan struct{})
	if !d.post(func(e *engine.Engine) { ev(e); close(finished) }) {
		return ErrStopped
	}
	select {
	case <-finished:
		return nil
	case <-d.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answerOf returns what get returns when the owner runs it. The owner may run get after ctx has
// ended, so they share nothing but the channel.
func answerOf[T any](ctx context.Context, d *Daemon, get func(e *engine.Engine) T) (T, error) {
	answer := make(chan T, 1)
	err := d.ask(ctx, func(e *engine.Engine) { answer <- get(e) })
	if err != nil {
		var none T
		return none, err
	}
	return <-answer, nil
}

// ErrStopped is the error of calls to a daemon that has stopped.
var ErrStopped = errors.New("the daemon has stopped")

func (d *Daemon) wakeIndex() {
	select {
	case d.wakes <- struct{}{}:
	default: // one is pending
	}
}

// recall makes the engine return documents to the embedded index. When it returns, none of them
// will be sent any more.
func (d *Daemon) recall(o *docindex.Outcomes) {
	_ = d.ask(context.Background(), func(e *engine.Engine) { e.Recalled(o) }) // a daemon that has stopped sends nothing
}

// RecallAll makes the engine return all documents to the index, those at spiders when they would be
// sent again. It does not wait for that.
func (d *Daemon) RecallAll() { d.post(func(e *engine.Engine) { e.RecallAll() }) }

// updateBackpressure lets the engine send and ask the index again if both outboxes of outcomes have room.
func (d *Daemon) updateBackpressure() {
	d.post(func(e *engine.Engine) { e.SetBackpressure(d.outbox.isFull() || d.redirects.isFull()) })
}

// outcomesWaiting returns how many outcomes are not delivered.
func (d *Daemon) outcomesWaiting() int { return d.outbox.pending() + d.redirects.pending() }
