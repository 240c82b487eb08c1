// Package urlserver is the daemon: it joins the engine with spiders' sockets, the
// doc index, the resolver and robots.txt around one owner goroutine.
package urlserver

import (
	"context"
	"errors"
	"math"
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
	"urlserver/urlserver/engine"
)

const (
	stopWait    = 10 * time.Second // for what is in flight, and then as long for outcomes
	eventBuffer = 256              // batches, not lines
	eventBurst  = 4                // events taken before the engine steps
)

// Parts is what a daemon works with. All but Store, Reserver and Traces are needed.
type Parts struct {
	Index    docindex.Source
	Store    Store     // the index, if it is embedded; nil: it is remote
	Reserver *Reserver // the reservation that daemons share; nil: none
	Resolver *resolver.Resolver
	Traces   *otlp.Exporter // told of sampled documents; nil: nobody is
	Log      zerolog.Logger
}

// Store is what the daemon uses of an embedded index beside the Source.
type Store interface {
	docindex.Returner
	docindex.Hooks
	docindex.Inspector
	Set(ctx context.Context, s docindex.Setting) error
}

// Daemon is a running URL server. Use New, then Run. Its other methods may be called
// from any goroutine while Run runs.
type Daemon struct {
	parts Parts
	log   zerolog.Logger
	start time.Time

	cfg    atomic.Pointer[configs.Config]
	robots atomic.Pointer[robots.Client]
	policy atomic.Pointer[robots.Policy]

	// The owner goroutine, which is Run's, alone touches these.
	engine   *engine.Engine
	sessions map[uint32]*session
	operated map[string]struct{} // hosts that were blocked, or let go on, since the start; nil: blocks of before are known
	done     chan struct{}       // closed when the owner takes no more events
	events   chan event

	pokes          chan struct{}
	asks           chan *engine.Ask
	claims         chan *engine.Claims
	outbox         *outbox         // of outcomes
	returns        *outbox         // of documents for the embedded index to take back
	hard           context.Context // ends when nothing is waited for any more
	work           sync.WaitGroup  // requests for robots.txt
	dialing        dialers
	indexErr       atomic.Pointer[string]
	namesDown      atomic.Bool // no name server can be used, as was logged
	candidateCalls calls
	badLines       limiter
	refusals       limiter
	mutes          limiter
	giveUps        limiter
}

// event is something for the owner to do.
type event func(e *engine.Engine)

// New returns a daemon with the given settings. Nothing runs yet.
func New(cfg configs.Config, parts Parts) *Daemon {
	d := &Daemon{
		parts:    parts,
		log:      parts.Log,
		start:    time.Now(),
		sessions: map[uint32]*session{},
		operated: map[string]struct{}{},
		done:     make(chan struct{}),
		events:   make(chan event, eventBuffer),
		pokes:    make(chan struct{}, 1),
		asks:     make(chan *engine.Ask, 1),
		claims:   make(chan *engine.Claims, 1),
	}
	d.engine = engine.New(cfg, engine.Options{
		Cached:     parts.Resolver.Cached,
		CachedFor:  parts.Resolver.CachedFor,
		ForNow:     func(err error) bool { return errors.Is(err, resolver.ErrServers) },
		Down:       func(err error) bool { return errors.Is(err, resolver.ErrDown) || errors.Is(err, resolver.ErrClosed) },
		Own:        parts.Resolver.IsOwn,
		Generation: rand.Uint32(),
		Exact:      parts.Store != nil,
		Shared:     parts.Store != nil && cfg.Frontier.Listen != "",
		Lease:      parts.Reserver.lease(),
		Counted:    parts.Reserver.counts(),
	})
	d.outbox = newOutbox("outcomes", parts.Index.Outcomes, d.log)
	d.outbox.choke, d.outbox.tell = d.choke, d.tellEnds
	d.returns = newOutbox("returned documents", d.returnAll, d.log)
	d.configureFetches(&cfg)
	d.configure(cfg)
	if parts.Store != nil {
		parts.Store.OnWake(d.poke)
		parts.Store.OnRecall(d.recall)
	}
	return d
}

func (d *Daemon) configure(cfg configs.Config) {
	d.cfg.Store(&cfg)
	d.outbox.configure(cfg.DocIndex)
	d.returns.configure(cfg.DocIndex)
	if d.parts.Store != nil {
		d.parts.Store.SetSlotGap(time.Duration(float64(time.Second) / cfg.ReqHostPerSec))
		d.parts.Store.SetHostRules(rulesByName(cfg.Rules))
	}
}

// configureFetches has robots.txt be fetched, and read, by new settings. The owner does it together with the engine: a
// fetch that the engine wants for a new user agent is not to be made for the one before.
func (d *Daemon) configureFetches(cfg *configs.Config) {
	d.robots.Store(robots.NewClient(robots.ClientConfig{
		UserAgent: cfg.Robots.UserAgent, Timeout: cfg.Robots.Timeout, MaxSize: cfg.Robots.MaxSize,
	}))
	d.policy.Store(&robots.Policy{Agent: cfg.Robots.UserAgent})
}

// rulesByName is what rules say to those who do not know hosts' addresses: the first for a name counts.
func rulesByName(rules []configs.HostRule) func(host []byte) docindex.HostRule {
	if len(rules) == 0 {
		return nil
	}
	set := configs.NewRuleSet(rules)
	return func(host []byte) docindex.HostRule {
		r := set.Rule(set.Match(host, netip.Addr{}))
		told := docindex.HostRule{Barred: r.Block}
		if r.PerSec > 0 {
			told.Gap = int64(math.Ceil(1000 / r.PerSec))
		}
		return told
	}
}

// Run works until ctx ends, and then stops gracefully: it sends nothing more,
// waits for what is in flight, and delivers the outcomes. listener is where
// spiders dial in; nil: nowhere. Run closes it.
func (d *Daemon) Run(ctx context.Context, listener net.Listener) error {
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	d.hard = hard
	var helpers sync.WaitGroup
	helpers.Go(func() { d.askIndex(hard) })
	helpers.Go(func() { d.outbox.run(hard) })
	helpers.Go(func() { d.returns.run(hard) })
	helpers.Go(func() { d.reserve(hard) })
	helpers.Go(func() { d.restoreBlocks(hard) })
	d.dialing = dialers{dial: func(ctx context.Context, addr string) { d.dial(ctx, addr) }}
	d.dialing.start(hard, d.cfg.Load().SpiderAddrs())
	var accepting sync.WaitGroup
	if listener != nil {
		accepting.Go(func() { d.accept(hard, listener) })
	}
	d.own(ctx)
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

// drain delivers what the doc index is still to be told, for stopWait at most.
func (d *Daemon) drain() error {
	var returns error
	var both sync.WaitGroup
	both.Go(func() { returns = d.returns.drain(stopWait) })
	outcomes := d.outbox.drain(stopWait)
	both.Wait()
	return errors.Join(outcomes, returns)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// own is the only goroutine that touches the engine and the sessions' map; it
// alone decides what time it is. It returns when the daemon has stopped.
func (d *Daemon) own(ctx context.Context) {
	defer close(d.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopping, deadline := ctx.Done(), time.Time{}
	for {
		select {
		case ev := <-d.events:
			d.burst(ev)
		case <-d.pokes:
			d.tell().Poke()
		case <-timer.C:
			d.tell()
		case <-stopping:
		}
		if stopping != nil && ctx.Err() != nil { // whatever else there was to do: nothing more is sent
			d.tell().Stop()
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

// atMost bounds a wait, of which a negative one is endless.
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

// burst handles an event and some that wait behind it, each at a time when it has happened: a line that left the daemon
// must not count from before.
func (d *Daemon) burst(ev event) {
	ev(d.tell())
	for range eventBurst {
		select {
		case ev = <-d.events:
			ev(d.tell())
		default:
			return
		}
	}
}

// clock is the time since the start, on the monotonic clock.
func (d *Daemon) clock() time.Duration { return time.Since(d.start) }

// tell tells the engine what time it is.
func (d *Daemon) tell() *engine.Engine {
	now := time.Now()
	d.engine.Advance(now.Sub(d.start), now)
	return d.engine
}

// post gives the owner something to do; it waits while the owner is busy, and
// answers false once the owner has gone.
func (d *Daemon) post(ev event) bool {
	select {
	case d.events <- ev:
		return true
	case <-d.done:
		return false
	}
}

// ask has the owner do something and waits for it. After an error it may be done yet.
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

// answerOf asks the owner for something. The owner may answer after the asker has given up, so
// nothing is shared with it but the channel.
func answerOf[T any](ctx context.Context, d *Daemon, get func(e *engine.Engine) T) (T, error) {
	answer := make(chan T, 1)
	err := d.ask(ctx, func(e *engine.Engine) { answer <- get(e) })
	if err != nil {
		var none T
		return none, err
	}
	return <-answer, nil
}

// ErrStopped is the answer of a daemon that has stopped.
var ErrStopped = errors.New("the daemon has stopped")

func (d *Daemon) poke() {
	select {
	case d.pokes <- struct{}{}:
	default: // one is on its way
	}
}

// recall has the engine give documents back to the embedded index; none of them is sent any more when it returns.
func (d *Daemon) recall(o *docindex.Outcomes) {
	_ = d.ask(context.Background(), func(e *engine.Engine) { e.Recalled(o) }) // a daemon that has stopped sends nothing
}

func (d *Daemon) choke(choked bool) {
	d.post(func(e *engine.Engine) { e.Choke(choked) })
}
