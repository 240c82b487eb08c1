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

// Status is how the daemon is doing.
type Status struct {
	engine.Stats
	Uptime          time.Duration
	Embedded        bool   // the doc index lives with the daemon
	IndexError      string // of the last request for candidates; "": it went well
	OutcomesWaiting int    // not yet delivered to the doc index
	Reserving       bool   // it shares hosts with other daemons
	ReserverAway    bool   // the last call of the reservation was not answered; the log says why
	CandidateCalls  CallStats
	OutcomeCalls    CallStats
	DNS             resolver.Stats
	NameServers     resolver.Health
}

// Status asks the owner for figures; ErrStopped where it has gone.
func (d *Daemon) Status(ctx context.Context) (s Status, err error) {
	s.Stats, err = answerOf(ctx, d, (*engine.Engine).Stats)
	s.Uptime = time.Since(d.start)
	s.Embedded = d.parts.Store != nil
	if text := d.indexErr.Load(); text != nil {
		s.IndexError = *text
	}
	s.OutcomesWaiting = d.outbox.pending()
	if r := d.parts.Reserver; r != nil {
		s.Reserving, s.ReserverAway = true, r.away()
	}
	s.CandidateCalls, s.OutcomeCalls = d.candidateCalls.read(), d.outbox.calls.read()
	s.DNS, s.NameServers = d.parts.Resolver.Stats(), d.parts.Resolver.Health()
	return s, err
}

// Answers waits until the owner has taken note; ErrStopped where it has gone.
func (d *Daemon) Answers(ctx context.Context) error {
	return d.ask(ctx, func(*engine.Engine) {})
}

// Ready says what keeps the daemon from working; nothing: it can.
func (d *Daemon) Ready(ctx context.Context) (reasons []string) {
	s, err := d.Status(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	return s.NotReady()
}

// NotReady says what keeps a daemon with this status from working; nothing: it can.
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

// Slots returns slots in use, from the offset-th on, with at most the given number of
// hosts each. The owner looks at some at a time, and goes on with its work in between.
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

// glancesAtOnce is how many slots the owner looks at before it goes on with its work: some
// hundred microseconds.
const glancesAtOnce = 1024

// Glances fills dst with the slots from the given one on. dst must not be used after an error:
// the owner may still write to it.
func (d *Daemon) Glances(ctx context.Context, from int, dst []hostslots.SlotSummary) error {
	for len(dst) > 0 {
		part := dst[:min(len(dst), glancesAtOnce)]
		if err := d.ask(ctx, func(e *engine.Engine) { e.Glances(from, part) }); err != nil {
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

// Blocked returns the hosts that the operator has blocked, at most so many, and the number of all.
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

// Hosts makes the list of a walk. The owner looks at some hosts at a time, and goes on with its work in between. walk must not
// be used after an error: the owner may still write to it.
func (d *Daemon) Hosts(ctx context.Context, walk *engine.HostWalk) error {
	for more := true; more; {
		var err error
		if more, err = answerOf(ctx, d, func(e *engine.Engine) bool { return e.WalkHosts(walk) }); err != nil {
			return err
		}
	}
	return d.ask(ctx, func(e *engine.Engine) { e.FinishHosts(walk) })
}

// RuleBlocked returns hosts with documents that a rule blocks, at most so many. more: there are others.
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

// Date turns a moment of the daemon's monotonic clock into one of the wall's.
func (d *Daemon) Date(t time.Duration) time.Time { return time.Now().Add(t - d.clock()) }

// Lend says that another daemon takes documents from the embedded index.
func (d *Daemon) Lend() { d.post(func(e *engine.Engine) { e.Lend() }) }

// Pause stops sending, or goes on.
func (d *Daemon) Pause(ctx context.Context, paused bool) error {
	return d.ask(ctx, func(e *engine.Engine) { e.Pause(paused) })
}

// MaxBlock is the longest block; it keeps sums of durations far from overflow.
const MaxBlock = 100 * 365 * 24 * time.Hour

// Block holds back everything to a host until the given time, at most a hundred years; one that is past lets it go on. With
// an embedded index that holds at all its doors, and as long as that keeps it.
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

// lastSecond is the last second that a block is for, as the index has it; 0: none is.
func lastSecond(until time.Time) uint64 {
	if longest := time.Now().Add(MaxBlock); until.After(longest) {
		until = longest
	}
	if !until.After(time.Now()) {
		return 0
	}
	return uint64(until.Add(time.Second-1).Unix() - 1)
}

// Delay has the embedded index give out a host so often at most, at all its doors; 0: as it would by itself. ErrNoStore where
// the index is elsewhere.
func (d *Daemon) Delay(ctx context.Context, host string, seconds uint32) error {
	if d.parts.Store == nil {
		return ErrNoStore
	}
	return d.setOnHost(ctx, host, docindex.SetDelay, uint64(seconds))
}

// ErrNoStore is the answer to what only an embedded index can do.
var ErrNoStore = errors.New("this daemon has no doc index of its own")

// setOnHost sets something on a host in the embedded index, if there is one, which is asked for more at once.
func (d *Daemon) setOnHost(ctx context.Context, host string, which docindex.SettingKind, value uint64) error {
	if d.parts.Store == nil {
		return nil
	}
	defer d.poke()
	return d.parts.Store.Set(ctx, docindex.Setting{Kind: which, Scope: docindex.Scope{Key: []byte(host)}, Host: true, Value: value})
}

// restoreBlocks has the slots know of blocks that an embedded index kept, but where the operator has said something else
// since the start. What the index blocks it does not give them anyway.
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
		return s.Host || len(s.Key) == 0 // others come behind
	})
	if err != nil && ctx.Err() == nil {
		d.log.Warn().Err(err).Msg("doc index does not tell which hosts are blocked; it gives nothing of them, but pages do not list them")
	}
}

// Settings are those in force.
func (d *Daemon) Settings() configs.Config { return *d.cfg.Load() }

// Reconfigure puts those settings in force that a running daemon can change, and names the changed ones: applied, and
// needing a restart. Once it has begun it ends even if ctx does, so that no part of the daemon keeps the old settings.
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
