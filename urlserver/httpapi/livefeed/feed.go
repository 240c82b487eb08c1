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
	publishEvery   = time.Second // between two messages to subscribers
	maxSubscribers = 64
	maxBehind      = 4 // messages a subscriber may leave unread before it is dropped

	// maxMessage bounds a message. With HTTP's overhead and the page's own requests a subscriber
	// gets less than 20 KB a second.
	maxMessage     = 17_500
	warningsAtOnce = 20 // in one message
)

// Source is the daemon whose state is published.
type Source interface {
	Status(ctx context.Context) (urlserver.Status, error)
	Summaries(ctx context.Context, from int, dst []hostslots.SlotSummary) error
	SlotsNumbered(ctx context.Context, numbers []uint32, hosts int) ([]hostslots.SlotView, error)
	Blocked(ctx context.Context, most int) ([]hostslots.BlockedHost, int, error)
	RuleBlocked(ctx context.Context, most int) (names []string, more bool, err error)
	Date(t time.Duration) time.Time
}

var _ Source = (*urlserver.Daemon)(nil)

// Config configures a Feed. All fields are required.
type Config struct {
	Source    Source
	SlotCount int        // host slots of the daemon
	QueueLen  func() int // Queue_Len in force

	// Status returns what the event "status" carries.
	Status func(urlserver.Status) any
	// Warnings returns at most most warnings with numbers above after, the latest ones, and the
	// number of the last.
	Warnings func(after uint64, most int) (warnings any, last uint64)
}

var (
	// ErrTooManySubscribers is returned by Subscribe at the limit of subscribers.
	ErrTooManySubscribers = errors.New("64 viewers watch already; close one")
	// ErrStopped is returned by the methods of a Feed whose Run has ended.
	ErrStopped = errors.New("nothing is watched any more: the server stops")
)

// Feed publishes the state of a Source. Use New, then Run. Its other methods may be called from
// any goroutine while Run runs.
type Feed struct {
	cfg   Config
	tasks chan func(context.Context)
	done  chan struct{} // closed when Run has ended

	// Run's goroutine alone touches these.
	history     history
	chunks      []mapChunk
	nextChunk   int // the chunk to refresh next
	subscribers map[*Subscriber]struct{}
	ticks       uint64
	lastWarning uint64 // number of the last one published
}

// Subscriber receives messages, each a part of an event stream (text/event-stream). The Feed
// closes C when the subscriber is too slow, and when Run ends.
type Subscriber struct{ C chan []byte }

// New returns a Feed that does not run yet.
func New(cfg Config) *Feed {
	f := &Feed{cfg: cfg, tasks: make(chan func(context.Context)), done: make(chan struct{}),
		subscribers: map[*Subscriber]struct{}{}}
	f.chunks = newMapChunks(cfg.SlotCount)
	return f
}

// Run publishes until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	defer close(f.done)
	defer func() {
		for sub := range f.subscribers {
			f.drop(sub)
		}
	}()
	samples := time.NewTicker(Every)
	defer samples.Stop()
	ticker := time.NewTicker(publishEvery)
	ticker.Stop()
	defer ticker.Stop()
	f.sample(ctx)
	for idle := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-samples.C:
			f.sample(ctx)
		case <-ticker.C:
			f.publish(ctx)
		case task := <-f.tasks:
			task(ctx)
		}
		if nobody := len(f.subscribers) == 0; nobody != idle {
			if idle = nobody; idle {
				ticker.Stop()
			} else {
				ticker.Reset(publishEvery)
			}
		}
	}
}

// do runs task in Run's goroutine and waits for its end.
func (f *Feed) do(ctx context.Context, task func(context.Context)) error {
	finished := make(chan struct{})
	select {
	case f.tasks <- func(ctx context.Context) { task(ctx); close(finished) }:
	case <-f.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-finished:
		return nil
	case <-f.done:
		return ErrStopped
	}
}

// Subscribe adds a subscriber; its first message is in C already. Call Unsubscribe when done.
func (f *Feed) Subscribe(ctx context.Context) (sub *Subscriber, err error) {
	joined := f.do(ctx, func(ctx context.Context) {
		if len(f.subscribers) == maxSubscribers {
			err = ErrTooManySubscribers
			return
		}
		sub = &Subscriber{C: make(chan []byte, maxBehind)}
		f.subscribers[sub] = struct{}{}
		f.sendFirst(ctx, sub)
	})
	return sub, errors.Join(joined, err)
}

// Unsubscribe removes a subscriber. It does no harm to one that was dropped.
func (f *Feed) Unsubscribe(sub *Subscriber) {
	_ = f.do(context.Background(), func(context.Context) { // after Run has ended all are dropped
		if _, there := f.subscribers[sub]; there {
			f.drop(sub)
		}
	})
}

// Subscribers returns the number of subscribers.
func (f *Feed) Subscribers(ctx context.Context) (n int, err error) {
	err = f.do(ctx, func(context.Context) { n = len(f.subscribers) })
	return n, err
}

func (f *Feed) drop(sub *Subscriber) {
	delete(f.subscribers, sub)
	close(sub.C)
}

// sendFirst sends a new subscriber the present state.
func (f *Feed) sendFirst(ctx context.Context, sub *Subscriber) {
	var m message
	if s, err := f.cfg.Source.Status(ctx); err == nil {
		m.add("status", f.cfg.Status(s))
	}
	if top, err := f.top(ctx); err == nil {
		m.addTop(top)
	}
	last := f.addWarnings(&m, 0)
	if len(f.subscribers) == 1 {
		f.lastWarning = last
	}
	sub.C <- m.text // C is empty, so this does not block
}

// publish sends the present state to all subscribers.
func (f *Feed) publish(ctx context.Context) {
	f.ticks++
	s, err := f.cfg.Source.Status(ctx)
	if err != nil {
		return // the daemon has stopped, and Run is about to end
	}
	var m message // its buffer is not reused: subscribers keep it
	m.add("status", f.cfg.Status(s))
	if _, last := f.cfg.Warnings(f.lastWarning, 0); last != f.lastWarning {
		f.lastWarning = f.addWarnings(&m, f.lastWarning)
	}
	if f.ticks%2 == 0 {
		if top, err := f.top(ctx); err == nil {
			m.addTop(top)
		}
	}
	f.addMapChunks(ctx, &m)
	f.send(m.text)
}

// addWarnings adds the latest warnings with numbers above after, as many as fit, and returns the
// number of the last.
func (f *Feed) addWarnings(m *message, after uint64) (last uint64) {
	for most := warningsAtOnce; most > 0; most /= 2 {
		warnings, last := f.cfg.Warnings(after, most)
		if m.add("warnings", warnings) {
			return last
		}
	}
	return after // the next message may have room
}

func (f *Feed) send(text []byte) {
	for sub := range f.subscribers {
		select {
		case sub.C <- text:
		default: // too slow; a browser reconnects by itself
			f.drop(sub)
		}
	}
}

// message is a sequence of events.
type message struct{ text []byte }

// add appends an event. It returns false where the message would exceed maxMessage.
func (m *message) add(name string, v any) (ok bool) {
	data, err := json.Marshal(v)
	if err != nil {
		return true // only infinities and NaN have no JSON, and none is published
	}
	return m.addText(name, data)
}

// addTop adds the lists, each cut to as many entries as fit.
func (m *message) addTop(t Top) {
	for !m.add("top", t) && len(t.Busiest)+len(t.Slowest)+len(t.Blocked)+len(t.ByRule) > 0 {
		t.MoreByRule = t.MoreByRule || len(t.ByRule) > 0
		t.Busiest, t.Slowest, t.Blocked, t.ByRule = half(t.Busiest), half(t.Slowest),
			half(t.Blocked), half(t.ByRule)
	}
}

func half[T any](list []T) []T { return list[:len(list)/2] }

func (m *message) addText(name string, data []byte) (ok bool) {
	const frame = len("event: \ndata: \n\n")
	if len(m.text)+frame+len(name)+len(data) > maxMessage {
		return false
	}
	m.text = append(append(append(append(append(m.text, "event: "...), name...), "\ndata: "...),
		data...), "\n\n"...)
	return true
}
