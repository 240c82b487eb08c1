package urlserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

const (
	outcomeBatch  = 4096      // outcomes in one call, unless the engine gave more at once
	unwantedPause = time.Hour // between two tries at an index that says it wants none
	spares        = 16        // empty buffers kept
)

// outbox delivers outcomes, or documents to be returned, to the doc index, in order, and keeps them
// until the index has taken them. It repeats a failed call, with pauses that double from
// docindex.retry up to docindex.max_retry.
//
// If the index answers that it wants no outcomes (docindex.ErrUnwanted), the outbox sends none for an
// hour. As the answer may come from a proxy during a deploy, it keeps them for that time and offers
// them once more. They cause no back-pressure: when the outbox has docindex.outcomes_max of them, it
// drops new ones. From the second such answer in a row on, it keeps only the outcomes of that call,
// and new ones up to outcomeBatch in all.
type outbox struct {
	what     string // name of what it delivers, for the log
	send     func(context.Context, *docindex.Outcomes) error
	log      zerolog.Logger
	relieved func()        // is called when there is room again
	more     chan struct{} // holds one when there may be something to do
	hurry    chan struct{} // holds one when the next try is not to wait
	calls    *callStats
	export   func(ends []engine.TraceEnd, delivered bool) // of sampled documents; it does not wait

	mu       sync.Mutex         // guards all below; held for memory work only
	sending  *docindex.Outcomes // is being delivered; nil: none
	waiting  []*docindex.Outcomes
	spare    []*docindex.Outcomes
	count    int // outcomes in waiting, and those being delivered
	dropped  int // unwanted outcomes dropped since the last log entry about them
	max      int
	retry    time.Duration
	maxRetry time.Duration
	full     bool
	stopping bool          // the daemon waits for the last tries
	refusals int           // answers in a row that the index wants none
	pausing  time.Duration // the last pause since the index failed
	empty    chan struct{} // closed when count is 0; nil: nobody waits
	traces   pendingTraces
}

func newOutbox(what string, send func(context.Context, *docindex.Outcomes) error, log zerolog.Logger) *outbox {
	return &outbox{
		what: what, send: send, log: log, calls: &callStats{},
		relieved: func() {}, export: func([]engine.TraceEnd, bool) {},
		more: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
	}
}

func (o *outbox) configure(cfg configs.DocIndex) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.max, o.retry, o.maxRetry = cfg.OutcomesMax, cfg.Retry, cfg.MaxRetry
}

// put takes outcomes over and leaves an empty buffer in their place. full reports that too many
// wait; relieved is called when there is room again. ends are of sampled documents among them.
func (o *outbox) put(out *docindex.Outcomes, ends []engine.TraceEnd) (full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refusals > 0 && o.count >= o.keepsLocked() {
		o.export(ends, false)
		o.dropped += out.Len()
		out.Reset()
		return false
	}
	o.export(o.traces.add(ends, out.Len()), false)
	batch := *out
	*out = docindex.Outcomes{}
	if n := len(o.spare); n > 0 {
		*out = *o.spare[n-1]
		o.spare = o.spare[:n-1]
	}
	o.waiting = append(o.waiting, &batch)
	o.count += batch.Len()
	select {
	case o.more <- struct{}{}:
	default:
	}
	o.full = o.full || o.refusals == 0 && o.count >= o.max
	return o.full
}

// addCancelled adds the outcomes of documents whose crawl is over that the index has not taken.
func (o *outbox) addCancelled(to *docindex.Outcomes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sending != nil {
		addCancelled(to, o.sending)
	}
	for _, batch := range o.waiting {
		addCancelled(to, batch)
	}
}

// keepsLocked returns how many unwanted outcomes the outbox keeps at most.
func (o *outbox) keepsLocked() int {
	if o.refusals > 1 {
		return min(o.max, outcomeBatch)
	}
	return o.max
}

// relieve tells the owner when there is room again.
func (o *outbox) relieve() {
	o.mu.Lock()
	free := o.full && (o.refusals > 0 || o.count <= o.max/2)
	if free {
		o.full = false
	}
	o.mu.Unlock()
	if free {
		o.relieved()
	}
}

// run delivers until ctx ends.
func (o *outbox) run(ctx context.Context) {
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
			o.relieve()
			if o.pause(ctx); ctx.Err() != nil {
				return
			}
		}
		o.relieve()
	}
}

// pause waits for the next try.
func (o *outbox) pause(ctx context.Context) {
	o.mu.Lock()
	timer := time.NewTimer(o.pausing)
	o.mu.Unlock()
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.hurry:
		o.mu.Lock()
		o.pausing = 0
		o.mu.Unlock()
	case <-ctx.Done():
	}
}

// failedLocked returns how long to wait after one more failure.
func (o *outbox) failedLocked() time.Duration {
	if o.refusals > 0 {
		o.refusals, o.pausing = 0, 0
	}
	o.pausing = min(max(2*o.pausing, o.retry), o.maxRetry)
	return o.pausing
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
		first.Append(o.waiting[used])
		o.keep(o.waiting[used])
	}
	o.waiting = append(o.waiting[:0], o.waiting[used:]...)
	o.sending = first
	return first
}

func (o *outbox) keep(b *docindex.Outcomes) {
	if len(o.spare) < spares {
		b.Reset()
		o.spare = append(o.spare, b)
	}
}

// deliver sends a batch. It returns false if the batch has to be sent again.
func (o *outbox) deliver(ctx context.Context, batch *docindex.Outcomes) bool {
	began := time.Now()
	err := o.send(ctx, batch)
	unwanted := errors.Is(err, docindex.ErrUnwanted)
	o.calls.note(began, err != nil && !unwanted)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case unwanted && o.stopping: // there is no next time
		o.export(o.traces.cut(0), false)
		o.sending, o.waiting, o.count = nil, nil, 0
		o.emptyLocked()
		return true
	case unwanted:
		o.unwantedLocked(err, batch)
		return false
	case err != nil:
		pause := o.failedLocked()
		o.log.Warn().Err(err).Int("count", batch.Len()).Stringer("retry_in", pause).
			Msg("doc index did not take " + o.what + "; they are kept, and offered again")
		return false
	}
	if o.refusals > 0 {
		o.log.Info().Int("dropped", o.dropped).Msg("doc index wants outcomes again")
	}
	o.refusals, o.pausing, o.dropped = 0, 0, 0
	o.export(o.traces.take(batch.Len()), true)
	o.count -= batch.Len()
	o.sending = nil
	o.keep(batch)
	o.emptyLocked()
	return true
}

// unwantedLocked keeps a batch that the index does not want. From the second such answer in a row
// on, it drops the outcomes behind the batch.
func (o *outbox) unwantedLocked(err error, batch *docindex.Outcomes) {
	o.refusals, o.pausing = o.refusals+1, unwantedPause
	if o.refusals > 1 {
		o.export(o.traces.cut(batch.Len()), false)
		o.dropped += o.count - batch.Len()
		o.waiting, o.count = nil, batch.Len()
	}
	o.log.Warn().Err(err).Int("kept", o.count).Int("dropped", o.dropped).Stringer("retry_in", o.pausing).
		Msg("doc index wants no outcomes; it gets none until it is asked again, as a proxy may have said " +
			"so; make it answer 2xx, even if it drops them")
	o.dropped = 0
}

func (o *outbox) emptyLocked() {
	if o.count == 0 && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
}

// emptied is closed when everything has been delivered.
func (o *outbox) emptied() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == 0 {
		return nothingWaits
	}
	if o.empty == nil {
		o.empty = make(chan struct{})
	}
	return o.empty
}

var nothingWaits = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// drain makes the next try at once, and waits until everything is delivered or most has passed.
// Call it once.
func (o *outbox) drain(most time.Duration) error {
	o.mu.Lock()
	o.stopping = true
	o.mu.Unlock()
	empty := o.emptied()
	o.hurry <- struct{}{} // never blocks: a daemon stops once
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-empty:
		return nil
	case <-timer.C:
		return fmt.Errorf("the doc index did not take all %s: %w", o.what, errUndelivered)
	}
}

var errUndelivered = errors.New("it gets the others only if it gives those documents out again")

// isFull reports whether too many wait.
func (o *outbox) isFull() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.full
}

// pending is the number of outcomes that are not delivered.
func (o *outbox) pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}
