package redis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// ferry lets a test that runs in a synctest bubble use a real Redis: the store's methods run
// outside of the bubble, where sockets are, with the bubble's time; what they call back runs
// inside.
type ferry struct {
	jobs  chan job
	lines chan *line
}

// line is what the two sides of a call talk by. It is made outside, as its channels have to be.
type line struct {
	calls chan func() // to be run inside; nil: the call has ended
	back  chan struct{}
}

type job struct {
	line *line
	do   func(inside func(func()))
}

// newFerry is to be called outside.
func newFerry() *ferry {
	const nested = 4
	f := &ferry{jobs: make(chan job), lines: make(chan *line, nested)}
	for range nested {
		f.lines <- &line{calls: make(chan func()), back: make(chan struct{})}
	}
	go func() {
		for j := range f.jobs {
			go j.run()
		}
	}()
	return f
}

func (j job) run() {
	j.do(func(call func()) {
		j.line.calls <- call
		<-j.line.back
	})
	j.line.calls <- nil
}

// outside runs do outside, and what that hands to its argument inside.
func (f *ferry) outside(do func(inside func(func()))) {
	l := <-f.lines
	f.jobs <- job{l, do}
	for call := range l.calls {
		if call == nil {
			break
		}
		call()
		l.back <- struct{}{}
	}
	f.lines <- l
}

// ferried is a store for tests in a bubble.
type ferried struct {
	f   *ferry
	s   *Store
	now atomic.Int64 // µs

	inside func(func()) // of the Delete on its way

	mu    sync.Mutex // guards waits
	waits []*wait
}

// wait is a call that waits inside for what is closed outside.
type wait struct {
	outer <-chan struct{}
	inner chan struct{}
}

var _ docindex.Store = (*ferried)(nil)

func (x *ferried) do(do func(inside func(func()))) {
	x.now.Store(time.Now().UnixMicro())
	x.f.outside(func(inside func(func())) {
		do(func(call func()) {
			inside(func() {
				x.pass()
				call()
			})
		})
	})
	x.pass()
}

// try is do for calls with a context, which is good inside only.
func (x *ferried) try(ctx context.Context, do func(ctx context.Context, inside func(func())) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	x.do(func(inside func(func())) { err = do(context.Background(), inside) })
	return err
}

func (x *ferried) Candidates(ctx context.Context, max int, reject []string, b *docindex.Batch) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.Candidates(ctx, max, reject, b) })
}

func (x *ferried) Lease(ctx context.Context, max int, reject []string, lease time.Duration, b *docindex.Batch) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.Lease(ctx, max, reject, lease, b) })
}

func (x *ferried) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.Outcomes(ctx, o) })
}

func (x *ferried) SetCrawlSettings(ctx context.Context, crawl string, text []byte) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.SetCrawlSettings(ctx, crawl, text) })
}

func (x *ferried) CrawlSettings(ctx context.Context, since uint64,
	visit func(crawl string, text []byte)) (version uint64, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		version, err = x.s.CrawlSettings(ctx, since, visit)
		return err
	})
	return version, err
}

func (x *ferried) Pause(ctx context.Context, o *docindex.Outcomes) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.Pause(ctx, o) })
}

func (x *ferried) EachPause(ctx context.Context, visit func(host []byte, left time.Duration)) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.EachPause(ctx, visit) })
}

func (x *ferried) KeepNotes(ctx context.Context, list []docindex.Note) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.KeepNotes(ctx, list) })
}

func (x *ferried) FindNotes(ctx context.Context, names []string, found func(i int, text []byte)) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.FindNotes(ctx, names, found) })
}

func (x *ferried) EachNote(ctx context.Context, prefix string, visit func(name string, text []byte)) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.EachNote(ctx, prefix, visit) })
}

func (x *ferried) Return(ctx context.Context, o *docindex.Outcomes) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.Return(ctx, o) })
}

func (x *ferried) Put(ctx context.Context, p *docindex.Puts) (res docindex.PutResult, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) { res, err = x.s.Put(ctx, p); return err })
	return res, err
}

func (x *ferried) Document(ctx context.Context, id []byte) (d docindex.Document, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		d,
			err = x.s.Document(ctx, id)
		return err
	})
	return d, err
}

func (x *ferried) Find(ctx context.Context, q docindex.Scope, url []byte) (d docindex.Document, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		d,
			err = x.s.Find(ctx, q, url)
		return err
	})
	return d, err
}

func (x *ferried) HostStatus(ctx context.Context, host []byte) (l docindex.HostStatus, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		l,
			err = x.s.HostStatus(ctx, host)
		return err
	})
	return l, err
}

func (x *ferried) SetHostRules(of func(host []byte) docindex.HostRule) { x.s.SetHostRules(of) }

// Serve waits inside, in the bubble's time.
func (x *ferried) Serve(ctx context.Context, r docindex.Request, give func(*docindex.Served) error) error {
	var p embedded.WaitBudget
	err := x.try(ctx, func(outer context.Context, inside func(func())) error {
		outer, cancel := context.WithCancel(outer)
		defer cancel()
		giveInside := func(h *docindex.Served) (err error) {
			inside(func() { err = give(h) })
			return err
		}
		return x.s.serve(outer, r, giveInside, func(_ context.Context, soon <-chan struct{}) (goOn bool) {
			inside(func() {
				if goOn = x.wait(ctx, &p, soon); ctx.Err() != nil {
					cancel()
				}
			})
			return goOn
		})
	})
	if errors.Is(err, context.Canceled) {
		return ctx.Err()
	}
	return err
}

func (x *ferried) wait(ctx context.Context, p *embedded.WaitBudget, soon <-chan struct{}) bool {
	w := &wait{soon, make(chan struct{})}
	x.mu.Lock()
	x.waits = append(x.waits, w)
	x.mu.Unlock()
	x.pass() // it may be closed by now
	goOn := p.Wait(ctx, w.inner)
	x.now.Store(time.Now().UnixMicro())
	return goOn
}

// pass passes on inside what was closed outside meanwhile.
func (x *ferried) pass() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waits = slices.DeleteFunc(x.waits, func(w *wait) bool {
		select {
		case <-w.outer:
			close(w.inner)
			return true
		default:
			return false
		}
	})
}

func (x *ferried) List(ctx context.Context, s docindex.Scope, visit func(*docindex.Document) bool) error {
	return x.try(ctx, func(ctx context.Context, inside func(func())) error {
		return x.s.List(ctx, s, func(d *docindex.Document) (goOn bool) {
			inside(func() { goOn = visit(d) })
			return goOn
		})
	})
}

func (x *ferried) Queues(ctx context.Context, crawl []byte, visit func(key []byte, idle bool) bool) error {
	return x.try(ctx, func(ctx context.Context, inside func(func())) error {
		return x.s.Queues(ctx, crawl, func(key []byte, idle bool) (goOn bool) {
			inside(func() { goOn = visit(key, idle) })
			return goOn
		})
	})
}

func (x *ferried) Settings(ctx context.Context, visit func(*docindex.Setting) bool) error {
	return x.try(ctx, func(ctx context.Context, inside func(func())) error {
		return x.s.Settings(ctx, func(one *docindex.Setting) (goOn bool) {
			inside(func() { goOn = visit(one) })
			return goOn
		})
	})
}

func (x *ferried) Crawls(ctx context.Context) (all []string, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) { all, err = x.s.Crawls(ctx); return err })
	return all, err
}

func (x *ferried) Count(ctx context.Context, s *docindex.Scope) (n docindex.Counts, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) { n, err = x.s.Count(ctx, s); return err })
	return n, err
}

func (x *ferried) Stats() (st docindex.StoreStats) {
	x.do(func(func(func())) { st = x.s.Stats() })
	return st
}

func (x *ferried) Active(ctx context.Context) (is bool, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		is, err = x.s.Active(ctx)
		return err
	})
	return is, err
}

func (x *ferried) Delete(ctx context.Context, s docindex.Scope) (n int, err error) {
	err = x.try(ctx, func(ctx context.Context, inside func(func())) (err error) {
		x.inside = inside
		n, err = x.s.Delete(ctx, s)
		return err
	})
	return n, err
}

func (x *ferried) Purge(ctx context.Context, s docindex.Scope, before time.Time) (n int, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		n,
			err = x.s.Purge(ctx, s, before)
		return err
	})
	return n, err
}

func (x *ferried) Set(ctx context.Context, set docindex.Setting) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.Set(ctx, set) })
}

func (x *ferried) ReportPending(ctx context.Context, id docindex.CrawlID, domains int,
	away *docindex.Outcomes) (v docindex.PendingReport, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		v, err = x.s.ReportPending(ctx, id, domains, away)
		return err
	})
	return v, err
}

func (x *ferried) StopCrawl(ctx context.Context, id docindex.CrawlID, why docindex.Kind) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.StopCrawl(ctx, id, why) })
}

func (x *ferried) PurgeCrawl(ctx context.Context, id docindex.CrawlID,
	tell func(*docindex.Outcomes) (int, error)) (n int, err error) {
	err = x.try(ctx, func(ctx context.Context, inside func(func())) (err error) {
		n, err = x.s.PurgeCrawl(ctx, id, func(o *docindex.Outcomes) (ended int, err error) {
			inside(func() { ended, err = tell(o) })
			return ended, err
		})
		return err
	})
	return n, err
}

func (x *ferried) CrawlsToEnd(ctx context.Context, now time.Time, most int) (due []docindex.CrawlEnd, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		due, err = x.s.CrawlsToEnd(ctx, now, most)
		return err
	})
	return due, err
}

func (x *ferried) FinishedCrawls(ctx context.Context, since time.Time,
	most int) (done []docindex.FinishedCrawl, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		done, err = x.s.FinishedCrawls(ctx, since, most)
		return err
	})
	return done, err
}

func (x *ferried) AckCrawlEnd(ctx context.Context, id docindex.CrawlID, round uint64) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.AckCrawlEnd(ctx, id, round) })
}

func (x *ferried) CrawlCounts(ctx context.Context, most int) (all []docindex.CrawlCounts, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		all, err = x.s.CrawlCounts(ctx, most)
		return err
	})
	return all, err
}

func (x *ferried) ListCrawls(ctx context.Context, text string, most int) (some []docindex.CrawlState,
	all int, err error) {
	err = x.try(ctx, func(ctx context.Context, _ func(func())) (err error) {
		some, all, err = x.s.ListCrawls(ctx, text, most)
		return err
	})
	return some, all, err
}

// OnDelete has tell called inside, during Delete.
func (x *ferried) OnDelete(tell func(*docindex.Outcomes)) {
	x.s.OnDelete(func(o *docindex.Outcomes) { x.inside(func() { tell(o) }) })
}

// OnWake and OnRecall: what the store calls then is called outside, and has to do with memory only.
func (x *ferried) OnWake(wake func())                     { x.s.OnWake(wake) }
func (x *ferried) OnRecall(back func(*docindex.Outcomes)) { x.s.OnRecall(back) }
func (x *ferried) SetSlotGap(gap time.Duration)           { x.s.SetSlotGap(gap) }
func (x *ferried) SetBudget(pages int)                    { x.s.SetBudget(pages) }
func (x *ferried) SetAhead(to docindex.Ahead)             { x.s.SetAhead(to) }
func (x *ferried) Rounds() []docindex.Round               { return x.s.Rounds() }
func (x *ferried) RestoreRounds(all []docindex.Round)     { x.s.RestoreRounds(all) }
func (x *ferried) SetAddresses(of docindex.Addresses)     { x.s.SetAddresses(of) }
func (x *ferried) Answered(ctx context.Context, all []docindex.HostAnswer) error {
	return x.try(ctx, func(ctx context.Context, _ func(func())) error { return x.s.Answered(ctx, all) })
}
