package urlserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

// askIndex asks the doc index, one request at a time.
func (d *Daemon) askIndex(ctx context.Context) {
	p := &engine.Prepared{} // the engine asks again only when it is through with it
	for {
		select {
		case a := <-d.asks:
			p.Batch.Reset()
			began := time.Now()
			p.Err = d.parts.Index.Candidates(ctx, a.Max, a.Reject, &p.Batch)
			if ctx.Err() != nil {
				return
			}
			d.candidateCalls.note(began, p.Err != nil)
			d.noteIndex(p.Err)
			p.Prepare()
			d.post(func(e *engine.Engine) { e.Answered(p) })
		case <-ctx.Done():
			return
		}
	}
}

// noteIndex remembers, and logs once, that the index failed or is well again.
func (d *Daemon) noteIndex(err error) {
	was := d.indexErr.Load()
	if err == nil {
		if was != nil && *was != "" {
			d.log.Info().Msg("doc index answers again")
		}
		d.indexErr.Store(new(string))
		return
	}
	text := err.Error()
	d.indexErr.Store(&text)
	if was == nil || *was != text {
		d.log.Warn().Err(err).Msg("doc index: request for candidates failed; trying on")
	}
}

const outcomeBatch = 4096 // outcomes a call, or what the engine gave at once

// outbox delivers outcomes to the doc index, in order, and keeps them until it
// has taken them.
type outbox struct {
	index docindex.Index
	log   zerolog.Logger
	choke func(bool)
	more  chan struct{} // holds one when there may be something to do
	hurry chan struct{} // holds one when the next try is not to wait
	calls calls
	tell  func(ends []engine.JourneyEnd, delivered bool) // of sampled documents; it does not wait

	mu       sync.Mutex // guards all below; held for memory work only
	waiting  []*docindex.Outcomes
	spare    []*docindex.Outcomes
	count    int // outcomes in waiting, and those being delivered
	max      int
	retry    time.Duration
	maxRetry time.Duration
	choked   bool
	unwanted bool
	empty    chan struct{} // closed when count is 0; nil: nobody waits
	trails   trails
}

func newOutbox(index docindex.Index, log zerolog.Logger, choke func(bool), tell func([]engine.JourneyEnd, bool)) *outbox {
	return &outbox{index: index, log: log, choke: choke, tell: tell, more: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

func (o *outbox) configure(cfg configs.DocIndex) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.max, o.retry, o.maxRetry = cfg.OutcomesMax, cfg.Retry, cfg.MaxRetry
}

// put takes outcomes over and leaves an empty buffer in their place. choked says
// that too many wait; choke tells when there is room again. ends are of sampled documents among them.
func (o *outbox) put(out *docindex.Outcomes, ends []engine.JourneyEnd) (choked bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unwanted {
		o.tell(ends, false)
		out.Reset()
		return false
	}
	o.tell(o.trails.add(ends, out.Len()), false)
	full := *out
	*out = docindex.Outcomes{}
	if n := len(o.spare); n > 0 {
		*out = *o.spare[n-1]
		o.spare = o.spare[:n-1]
	}
	o.waiting = append(o.waiting, &full)
	o.count += full.Len()
	select {
	case o.more <- struct{}{}:
	default:
	}
	o.choked = o.choked || o.count >= o.max
	return o.choked
}

// relieve tells the owner when there is room again.
func (o *outbox) relieve() {
	o.mu.Lock()
	free := o.choked && o.count <= o.max/2
	if free {
		o.choked = false
	}
	o.mu.Unlock()
	if free {
		o.choke(false)
	}
}

// run delivers until ctx ends.
func (o *outbox) run(ctx context.Context) {
	backoff := time.Duration(0)
	for {
		batch := o.next()
		if batch == nil {
			select {
			case <-o.more:
				continue
			case <-ctx.Done():
				return
			}
		}
		for !o.deliver(ctx, batch) {
			if backoff = o.pause(ctx, o.backOff(backoff)); ctx.Err() != nil {
				return
			}
		}
		backoff = 0
		o.relieve()
	}
}

// pause waits for the next try. It returns what the pause after that one grows from.
func (o *outbox) pause(ctx context.Context, backoff time.Duration) time.Duration {
	timer := time.NewTimer(backoff)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.hurry:
		return 0
	case <-ctx.Done():
	}
	return backoff
}

func (o *outbox) backOff(last time.Duration) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return min(max(2*last, o.retry), o.maxRetry)
}

// next takes the first outcomes out, joined with those behind them while they
// are few.
func (o *outbox) next() *docindex.Outcomes {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return nil
	}
	first, used := o.waiting[0], 1
	for ; used < len(o.waiting) && first.Len()+o.waiting[used].Len() <= outcomeBatch; used++ {
		next := o.waiting[used]
		for i := range next.Len() {
			first.Add(next.At(i))
		}
		o.keep(next)
	}
	o.waiting = append(o.waiting[:0], o.waiting[used:]...)
	return first
}

const spares = 16 // empty buffers kept

func (o *outbox) keep(b *docindex.Outcomes) {
	if len(o.spare) < spares {
		b.Reset()
		o.spare = append(o.spare, b)
	}
}

// deliver answers whether the batch is dealt with.
func (o *outbox) deliver(ctx context.Context, batch *docindex.Outcomes) bool {
	began := time.Now()
	err := o.index.Outcomes(ctx, batch)
	o.calls.note(began, err != nil && !errors.Is(err, docindex.ErrUnwanted))
	if err != nil && !errors.Is(err, docindex.ErrUnwanted) {
		o.log.Warn().Err(err).Int("outcomes", batch.Len()).Msg("doc index took no outcomes; keeping them")
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count -= batch.Len()
	if err == nil {
		o.tell(o.trails.take(batch.Len()), true)
	} else {
		o.tell(o.trails.takeAll(), false)
		o.log.Info().Msg("the doc index does not want outcomes; none are sent from now on")
		o.unwanted, o.waiting, o.count = true, nil, 0
	}
	o.keep(batch)
	if o.count == 0 && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
	return true
}

// drain has the next try made at once, and waits until all outcomes are
// delivered, for so long at most.
func (o *outbox) drain(most time.Duration) error {
	o.mu.Lock()
	if o.count == 0 {
		o.mu.Unlock()
		return nil
	}
	empty := make(chan struct{})
	o.empty = empty
	o.mu.Unlock()
	o.hurry <- struct{}{} // never blocks: a daemon stops once
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-empty:
		return nil
	case <-timer.C:
		return errUndelivered
	}
}

var errUndelivered = errors.New("some outcomes could not be delivered to the doc index; it will offer those documents again")

// Pending is the number of outcomes that are not delivered.
func (o *outbox) pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}
