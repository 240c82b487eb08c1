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
	beat       = time.Second // between two messages to viewers
	maxViewers = 64
	queued     = 4 // messages that a viewer may be behind before it is dropped

	// maxMessage is what a viewer gets in a beat at most: less than 20 KB a second, with what
	// HTTP adds and what a page asks for beside it.
	maxMessage   = 17_500
	toldWarnings = 20 // at once
)

// Source is what is watched.
type Source interface {
	Status(ctx context.Context) (urlserver.Status, error)
	Glances(ctx context.Context, from int, dst []hostslots.SlotSummary) error
	SlotsNumbered(ctx context.Context, numbers []uint32, hosts int) ([]hostslots.SlotView, error)
	Blocked(ctx context.Context, most int) ([]hostslots.BlockedHost, int, error)
	RuleBlocked(ctx context.Context, most int) (names []string, more bool, err error)
	Date(t time.Duration) time.Time
}

var _ Source = (*urlserver.Daemon)(nil)

// Config is what a Watcher works with. All is needed.
type Config struct {
	Source Source
	Slots  int        // how many there are
	Length func() int // Queue_Len in force

	// Status is the message about a status.
	Status func(urlserver.Status) any
	// News returns the latest warnings after the given one, at most so many, and the number of the last.
	News func(after uint64, most int) (warnings any, last uint64)
}

var (
	// ErrViewers is the answer to one viewer too many.
	ErrViewers = errors.New("64 viewers watch already; close one")
	// ErrStopped is the answer of a Watcher that does not run any more.
	ErrStopped = errors.New("nothing is watched any more: the server stops")
)

// Watcher watches a Source. Use New, then Run. Its other methods may be called from any
// goroutine while Run runs.
type Watcher struct {
	cfg   Config
	tasks chan func(context.Context)
	done  chan struct{} // closed when Run has ended

	// Run's goroutine alone touches these.
	history history
	stripes []stripe
	next    int // stripe to be looked at
	viewers map[*Viewer]struct{}
	beats   uint64
	news    uint64 // the last warning told
}

// Viewer gets messages until C is closed: because it was too slow, or the Watcher ends. Each
// is part of an event stream (text/event-stream).
type Viewer struct{ C chan []byte }

// New returns a Watcher.
func New(cfg Config) *Watcher {
	w := &Watcher{cfg: cfg, tasks: make(chan func(context.Context)), done: make(chan struct{}), viewers: map[*Viewer]struct{}{}}
	w.stripes = newStripes(cfg.Slots)
	return w
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	defer close(w.done)
	defer func() {
		for v := range w.viewers {
			w.drop(v)
		}
	}()
	samples := time.NewTicker(Every)
	defer samples.Stop()
	beats := time.NewTicker(beat)
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
			w.tell(ctx)
		case task := <-w.tasks:
			task(ctx)
		}
		if nobody := len(w.viewers) == 0; nobody != idle {
			if idle = nobody; idle {
				beats.Stop()
			} else {
				beats.Reset(beat)
			}
		}
	}
}

// do has Run's goroutine do something and waits for it.
func (w *Watcher) do(ctx context.Context, task func(context.Context)) error {
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

// Join adds a viewer, which has the first message at once. Leave is to follow.
func (w *Watcher) Join(ctx context.Context) (v *Viewer, err error) {
	joined := w.do(ctx, func(ctx context.Context) {
		if len(w.viewers) == maxViewers {
			err = ErrViewers
			return
		}
		v = &Viewer{C: make(chan []byte, queued)}
		w.viewers[v] = struct{}{}
		w.welcome(ctx, v)
	})
	return v, errors.Join(joined, err)
}

// Leave ends what Join began.
func (w *Watcher) Leave(v *Viewer) {
	_ = w.do(context.Background(), func(context.Context) { // a Watcher that ends has dropped it
		if _, there := w.viewers[v]; there {
			w.drop(v)
		}
	})
}

// Viewers is how many there are.
func (w *Watcher) Viewers(ctx context.Context) (n int, err error) {
	err = w.do(ctx, func(context.Context) { n = len(w.viewers) })
	return n, err
}

func (w *Watcher) drop(v *Viewer) {
	delete(w.viewers, v)
	close(v.C)
}

// welcome gives a viewer what others have had before.
func (w *Watcher) welcome(ctx context.Context, v *Viewer) {
	var m message
	if s, err := w.cfg.Source.Status(ctx); err == nil {
		m.add("status", w.cfg.Status(s))
	}
	if top, err := w.top(ctx); err == nil {
		m.addTop(top)
	}
	last := w.addNews(&m, 0)
	if len(w.viewers) == 1 {
		w.news = last
	}
	v.C <- m.text // it is empty
}

// tell tells all viewers how things are.
func (w *Watcher) tell(ctx context.Context) {
	w.beats++
	s, err := w.cfg.Source.Status(ctx)
	if err != nil {
		return // it stops; so will this
	}
	var m message // a new one: viewers keep it
	m.add("status", w.cfg.Status(s))
	if _, last := w.cfg.News(w.news, 0); last != w.news {
		w.news = w.addNews(&m, w.news)
	}
	if w.beats%2 == 0 {
		if top, err := w.top(ctx); err == nil {
			m.addTop(top)
		}
	}
	w.addStripes(ctx, &m)
	w.send(m.text)
}

// addNews adds the latest warnings after the given one, as many as there is room for, and returns the number of the last.
func (w *Watcher) addNews(m *message, after uint64) (last uint64) {
	for most := toldWarnings; most > 0; most /= 2 {
		warnings, last := w.cfg.News(after, most)
		if m.add("warnings", warnings) {
			return last
		}
	}
	return after // it is told when there is more room
}

func (w *Watcher) send(text []byte) {
	for v := range w.viewers {
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
