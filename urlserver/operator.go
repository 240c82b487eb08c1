package urlserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/resolver"
	"urlserver/urlserver/engine"
)

// Status is a snapshot of the daemon's state and counters.
type Status struct {
	engine.Stats
	Uptime          time.Duration
	Embedded        bool   // the doc index is embedded
	IndexError      string // of the last request for candidates; "": none
	OutcomesWaiting int    // not acknowledged by the doc index
	Reserving       bool   // it shares hosts with other daemons
	ReserverAway    bool   // the last call of the reservation was not answered; the log says why
	CandidateCalls  CallStats
	OutcomeCalls    CallStats
	DNS             resolver.Stats
	NameServers     resolver.Health
}

// Status returns the current status. The error is ErrStopped if the daemon has stopped.
func (d *Daemon) Status(ctx context.Context) (s Status, err error) {
	s.Stats, err = answerOf(ctx, d, (*engine.Engine).Stats)
	s.Uptime = time.Since(d.start)
	s.Embedded = d.parts.Store != nil
	if text := d.indexErr.Load(); text != nil {
		s.IndexError = *text
	}
	s.OutcomesWaiting = d.outcomesWaiting()
	if r := d.parts.Reserver; r != nil {
		s.Reserving, s.ReserverAway = true, r.away()
	}
	s.CandidateCalls, s.OutcomeCalls = d.candidateCalls.read(), d.outbox.calls.read()
	s.DNS, s.NameServers = d.parts.Resolver.Stats(), d.parts.Resolver.Health()
	return s, err
}

// Answers waits until the owner goroutine has run an event. The error is ErrStopped if the daemon
// has stopped.
func (d *Daemon) Answers(ctx context.Context) error {
	return d.ask(ctx, func(*engine.Engine) {})
}

// Ready returns what keeps the daemon from working, in words; nil: nothing does.
func (d *Daemon) Ready(ctx context.Context) (reasons []string) {
	s, err := d.Status(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	return s.NotReady()
}

// NotReady returns what keeps a daemon with this status from working, in words; nil: nothing does.
func (s *Status) NotReady() (reasons []string) {
	if s.IndexError != "" {
		reasons = append(reasons, "doc index: "+s.IndexError)
	}
	if h := s.NameServers; h.Down {
		reasons = append(reasons, fmt.Sprintf("no name server can be used since %s (%s): %s; names wait until one can",
			h.Since.UTC().Format(time.RFC3339), strings.Join(h.Servers, ", "), h.Why))
	}
	if s.Stopping {
		reasons = append(reasons, "the daemon is stopping")
	}
	if len(s.Spiders) == 0 {
		reasons = append(reasons, "no spider is connected")
	}
	return reasons
}

// Slots returns up to limit slots in use, from the offset-th on, with at most the given number of
// hosts each. The owner visits them in portions and does other work in between.
func (d *Daemon) Slots(ctx context.Context, offset, limit, hosts int) ([]hostslots.SlotView, error) {
	w := engine.SlotViews{Offset: offset, Limit: limit, Hosts: hosts}
	for more := true; more; {
		var err error
		if more, err = answerOf(ctx, d, func(e *engine.Engine) bool { return e.SlotViews(&w) }); err != nil {
			return nil, err
		}
	}
	return w.Found, nil
}

// summariesAtOnce is the portion of slots that the owner visits at once: some hundred microseconds.
const summariesAtOnce = 1024

// Summaries fills dst with the summaries of the slots from the given one on. After an error dst
// must not be used, because the owner may still write to it.
func (d *Daemon) Summaries(ctx context.Context, from int, dst []hostslots.SlotSummary) error {
	for len(dst) > 0 {
		part := dst[:min(len(dst), summariesAtOnce)]
		if err := d.ask(ctx, func(e *engine.Engine) { e.SlotSummaries(from, part) }); err != nil {
			return err
		}
		from, dst = from+len(part), dst[len(part):]
	}
	return nil
}

// SlotsNumbered returns those of the given slots that are in use.
func (d *Daemon) SlotsNumbered(ctx context.Context, numbers []uint32, hosts int) ([]hostslots.SlotView, error) {
	return answerOf(ctx, d, func(e *engine.Engine) (views []hostslots.SlotView) {
		for _, n := range numbers {
			if v, used := e.SlotView(n, hosts); used {
				views = append(views, v)
			}
		}
		return views
	})
}

// Blocked returns at most the given number of the hosts that the operator has blocked, and the
// number of all.
func (d *Daemon) Blocked(ctx context.Context, most int) ([]hostslots.BlockedHost, int, error) {
	type blocked struct {
		hosts []hostslots.BlockedHost
		all   int
	}
	b, err := answerOf(ctx, d, func(e *engine.Engine) (b blocked) {
		b.hosts, b.all = e.Blocked(most)
		return b
	})
	return b.hosts, b.all, err
}

// Hosts makes the list of a walk. The owner looks at some hosts at a time, and goes on with its
// work in between. walk must not be used after an error: the owner may still write to it.
func (d *Daemon) Hosts(ctx context.Context, walk *engine.HostWalk) error {
	for more := true; more; {
		var err error
		if more, err = answerOf(ctx, d, func(e *engine.Engine) bool { return e.WalkHosts(walk) }); err != nil {
			return err
		}
	}
	return d.ask(ctx, func(e *engine.Engine) { e.FinishHosts(walk) })
}

// RuleBlocked returns hosts with documents that a rule blocks, at most so many. more: there are
// others.
func (d *Daemon) RuleBlocked(ctx context.Context, most int) (names []string, more bool, err error) {
	type blocked struct {
		names []string
		more  bool
	}
	b, err := answerOf(ctx, d, func(e *engine.Engine) (b blocked) {
		b.names, b.more = e.RuleBlocked(most)
		return b
	})
	return b.names, b.more, err
}

// Date converts a moment of the daemon's monotonic clock to the wall clock.
func (d *Daemon) Date(t time.Duration) time.Time { return time.Now().Add(t - d.clock()) }

// NoteRemoteLease records that another daemon leases documents from the embedded index.
func (d *Daemon) NoteRemoteLease() { d.post(func(e *engine.Engine) { e.NoteRemoteLease() }) }

// Pause pauses sending, or resumes it.
func (d *Daemon) Pause(ctx context.Context, paused bool) error {
	return d.ask(ctx, func(e *engine.Engine) { e.Pause(paused) })
}

// MaxBlock is the longest block. It keeps sums of durations from overflowing.
const MaxBlock = 100 * 365 * 24 * time.Hour

// Block blocks a host until the given time, at most for MaxBlock; a time that has passed unblocks
// it. An embedded index applies the block to all its consumers and stores it.
func (d *Daemon) Block(ctx context.Context, host string, until time.Time) error {
	err := d.ask(ctx, func(e *engine.Engine) {
		if d.operated != nil {
			d.operated[host] = struct{}{}
		}
		block(e, host, until)
	})
	if err != nil {
		return err
	}
	return d.setOnHost(ctx, host, docindex.SetBlock, lastSecond(until))
}

func block(e *engine.Engine, host string, until time.Time) {
	e.Block([]byte(host), min(time.Until(until), MaxBlock))
}

// lastSecond returns the last second of a block, in the form of the index; 0: no block.
func lastSecond(until time.Time) uint64 {
	if longest := time.Now().Add(MaxBlock); until.After(longest) {
		until = longest
	}
	if !until.After(time.Now()) {
		return 0
	}
	return uint64(until.Add(time.Second-1).Unix() - 1)
}

// Delay sets the least time between two URLs of a host that the embedded index hands out, to any
// consumer; 0 removes it. The error is ErrNoStore if the index is not embedded.
func (d *Daemon) Delay(ctx context.Context, host string, seconds uint32) error {
	if d.parts.Store == nil {
		return ErrNoStore
	}
	return d.setOnHost(ctx, host, docindex.SetDelay, uint64(seconds))
}

// ErrNoStore is the error of calls that need an embedded index.
var ErrNoStore = errors.New("this daemon has no doc index of its own")

// setOnHost changes a setting of a host in the embedded index, if there is one, and wakes the index
// poll.
func (d *Daemon) setOnHost(ctx context.Context, host string, which docindex.SettingKind, value uint64) error {
	if d.parts.Store == nil {
		return nil
	}
	defer d.wakeIndex()
	return d.parts.Store.Set(ctx, docindex.Setting{Kind: which, Scope: docindex.Scope{Key: []byte(host)},
		Host: true, Value: value})
}

// restoreBlocks copies the blocks that an embedded index has stored to the slots, except for hosts
// that the operator has blocked or unblocked since the start. The index itself enforces its blocks
// from the start.
func (d *Daemon) restoreBlocks(ctx context.Context) {
	defer d.post(func(*engine.Engine) { d.operated = nil })
	if d.parts.Store == nil {
		return
	}
	err := d.parts.Store.Settings(ctx, func(s *docindex.Setting) bool {
		if s.Host && s.Kind == docindex.SetBlock {
			host, until := string(s.Key), time.Unix(int64(s.Value)+1, 0)
			d.post(func(e *engine.Engine) {
				if _, known := d.operated[host]; !known {
					block(e, host, until)
				}
			})
		}
		return s.Host || len(s.Key) == 0 // settings of hosts and of all come first
	})
	if err != nil && ctx.Err() == nil {
		d.log.Warn().Err(err).Msg(
			"doc index does not tell which hosts are blocked; it gives nothing of them, but pages do not list them")
	}
}

// Settings returns the settings in force.
func (d *Daemon) Settings() configs.Config { return *d.cfg.Load() }

// Reconfigure applies those changed settings that a running daemon can change. It returns their
// names, and the names of those that need a restart. Once begun it completes even if ctx ends, so
// that no part of the daemon keeps the old settings.
func (d *Daemon) Reconfigure(ctx context.Context, cfg configs.Config) (applied, refused []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	old := *d.cfg.Load()
	applied, refused = configs.Changes(old, cfg)
	cfg = configs.Apply(old, cfg)
	err = d.ask(context.WithoutCancel(ctx), func(e *engine.Engine) {
		d.configureFetches(&cfg)
		e.Reconfigure(cfg)
	})
	if err != nil {
		return nil, nil, err
	}
	d.configure(cfg)
	d.dialing.change(cfg.SpiderAddrs())
	return applied, refused, nil
}
