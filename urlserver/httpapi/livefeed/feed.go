package livefeed

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"urlserver/hostslots"
	"urlserver/urlserver"
)

const (
	publishEvery   = time.Second // between two messages to viewers
	maxSubscribers = 64
	maxBehind      = 4 // messages that a viewer may be behind before it is dropped

	// maxMessage is what a viewer gets in a beat at most: less than 20 KB a second, with what
	// HTTP adds and what a page asks for beside it.
	maxMessage     = 17_500
	warningsAtOnce = 20 // at once
)

// Source is what is watched.
type Source interface {
	Status(ctx context.Context) (urlserver.Status, error)
	Summaries(ctx context.Context, from int, dst []hostslots.SlotSummary) error
	SlotsNumbered(ctx context.Context, numbers []uint32, hosts int) ([]hostslots.SlotView, error)
	Blocked(ctx context.Context, most int) ([]hostslots.BlockedHost, int, error)
	RuleBlocked(ctx context.Context, most int) (names []string, more bool, err error)
	Date(t time.Duration) time.Time
}

var _ Source = (*urlserver.Daemon)(nil)

// Config is what a Watcher works with. All is needed.
type Config struct {
	Source    Source
	SlotCount int        // how many there are
	QueueLen  func() int // Queue_Len in force

	// Status is the message about a status.
	Status func(urlserver.Status) any
	// Warnings returns the latest warnings after the given one, at most so many, and the number of the last.
	Warnings func(after uint64, most int) (warnings any, last uint64)
}

var (
	// ErrTooManySubscribers is the answer to one viewer too many.
	ErrTooManySubscribers = errors.New("64 viewers watch already; close one")
	// ErrStopped is the answer of a Watcher that does not run any more.
	ErrStopped = errors.New("nothing is watched any more: the server stops")
)

// Feed watches a Source. Use New, then Run. Its other methods may be called from any
// goroutine while Run runs.
type Feed struct {
	cfg   Config
	tasks chan func(context.Context)
	done  chan struct{} // closed when Run has ended

	// Run's goroutine alone touches these.
	history     history
	chunks      []mapChunk
	nextChunk   int // stripe to be looked at
	subscribers map[*Subscriber]struct{}
	ticks       uint64
	lastWarning uint64 // the last warning told
}

// Subscriber gets messages until C is closed: because it was too slow, or the Watcher ends. Each
// is part of an event stream (text/event-stream).
type Subscriber struct{ C chan []byte }

// New returns a Watcher.
func New(cfg Config) *Feed {
	w := &Feed{cfg: cfg, tasks: make(chan func(context.Context)), done: make(chan struct{}), subscribers: map[*Subscriber]struct{}{}}
	w.chunks = newMapChunks(cfg.SlotCount)
	return w
}

// Run watches until ctx ends.
func (w *Feed) Run(ctx context.Context) {
	defer close(w.done)
	defer func() {
		for v := range w.subscribers {
			w.drop(v)
		}
	}()
	samples := time.NewTicker(Every)
	defer samples.Stop()
	beats := time.NewTicker(publishEvery)
	beats.Stop()
	defer beats.Stop()
	w.sample(ctx)
	for idle := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-samples.C:
			w.sample(ctx)
		case <-beats.C:
			w.publish(ctx)
		case task := <-w.tasks:
			task(ctx)
		}
		if nobody := len(w.subscribers) == 0; nobody != idle {
			if idle = nobody; idle {
				beats.Stop()
			} else {
				beats.Reset(publishEvery)
			}
		}
	}
}

// do has Run's goroutine do something and waits for it.
func (w *Feed) do(ctx context.Context, task func(context.Context)) error {
	finished := make(chan struct{})
	select {
	case w.tasks <- func(ctx context.Context) { task(ctx); close(finished) }:
	case <-w.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-finished:
		return nil
	case <-w.done:
		return ErrStopped
	}
}

// Subscribe adds a viewer, which has the first message at once. Leave is to follow.
func (w *Feed) Subscribe(ctx context.Context) (v *Subscriber, err error) {
	joined := w.do(ctx, func(ctx context.Context) {
		if len(w.subscribers) == maxSubscribers {
			err = ErrTooManySubscribers
			return
		}
		v = &Subscriber{C: make(chan []byte, maxBehind)}
		w.subscribers[v] = struct{}{}
		w.sendFirst(ctx, v)
	})
	return v, errors.Join(joined, err)
}

// Unsubscribe ends what Join began.
func (w *Feed) Unsubscribe(v *Subscriber) {
	_ = w.do(context.Background(), func(context.Context) { // a Watcher that ends has dropped it
		if _, there := w.subscribers[v]; there {
			w.drop(v)
		}
	})
}

// Subscribers is how many there are.
func (w *Feed) Subscribers(ctx context.Context) (n int, err error) {
	err = w.do(ctx, func(context.Context) { n = len(w.subscribers) })
	return n, err
}

func (w *Feed) drop(v *Subscriber) {
	delete(w.subscribers, v)
	close(v.C)
}

// sendFirst gives a viewer what others have had before.
func (w *Feed) sendFirst(ctx context.Context, v *Subscriber) {
	var m message
	if s, err := w.cfg.Source.Status(ctx); err == nil {
		m.add("status", w.cfg.Status(s))
	}
	if top, err := w.top(ctx); err == nil {
		m.addTop(top)
	}
	last := w.addWarnings(&m, 0)
	if len(w.subscribers) == 1 {
		w.lastWarning = last
	}
	v.C <- m.text // it is empty
}

// publish tells all viewers how things are.
func (w *Feed) publish(ctx context.Context) {
	w.ticks++
	s, err := w.cfg.Source.Status(ctx)
	if err != nil {
		return // it stops; so will this
	}
	var m message // a new one: viewers keep it
	m.add("status", w.cfg.Status(s))
	if _, last := w.cfg.Warnings(w.lastWarning, 0); last != w.lastWarning {
		w.lastWarning = w.addWarnings(&m, w.lastWarning)
	}
	if w.ticks%2 == 0 {
		if top, err := w.top(ctx); err == nil {
			m.addTop(top)
		}
	}
	w.addMapChunks(ctx, &m)
	w.send(m.text)
}

// addWarnings adds the latest warnings after the given one, as many as there is room for, and returns the number of the last.
func (w *Feed) addWarnings(m *message, after uint64) (last uint64) {
	for most := warningsAtOnce; most > 0; most /= 2 {
		warnings, last := w.cfg.Warnings(after, most)
		if m.add("warnings", warnings) {
			return last
		}
	}
	return after // it is told when there is more room
}

func (w *Feed) send(text []byte) {
	for v := range w.subscribers {
		select {
		case v.C <- text:
		default: // its browser comes again when it can
			w.drop(v)
		}
	}
}

// message is events for viewers.
type message struct{ text []byte }

// add adds an event if there is room: no viewer gets more than it should.
func (m *message) add(name string, v any) (ok bool) {
	data, err := json.Marshal(v)
	if err != nil {
		return true // of values that have no JSON, such as infinities; there are none
	}
	return m.addText(name, data)
}

// addTop adds the first of each list, as many as there is room for.
func (m *message) addTop(t Top) {
	for !m.add("top", t) && len(t.Busiest)+len(t.Slowest)+len(t.Blocked)+len(t.ByRule) > 0 {
		t.MoreByRule = t.MoreByRule || len(t.ByRule) > 0
		t.Busiest, t.Slowest, t.Blocked, t.ByRule = half(t.Busiest), half(t.Slowest), half(t.Blocked), half(t.ByRule)
	}
}

func half[T any](list []T) []T { return list[:len(list)/2] }

func (m *message) addText(name string, data []byte) (ok bool) {
	const frame = len("event: \ndata: \n\n")
	if len(m.text)+frame+len(name)+len(data) > maxMessage {
		return false
	}
	m.text = append(append(append(append(append(m.text, "event: "...), name...), "\ndata: "...), data...), "\n\n"...)
	return true
}
