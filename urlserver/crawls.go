package urlserver

import (
	"context"

	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

// Cancel ends documents of stopped or expired crawls, each with the outcome that o has for it, and
// returns how many will not be sent. Documents at spiders go on, and are not sent again. If the
// index is being asked, Cancel waits for its answer, as documents may be in it.
func (d *Daemon) Cancel(ctx context.Context, o *docindex.Outcomes) (ended int, err error) {
	answer := make(chan int, 1)
	err = d.ask(context.WithoutCancel(ctx), func(e *engine.Engine) { // o is ours until the owner is through
		e.Cancel(o, func(n int) { answer <- n })
	})
	if err != nil {
		return 0, err
	}
	select {
	case ended = <-answer:
		return ended, nil
	case <-d.done:
		return 0, ErrStopped
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// NotPending adds the documents that the index counts with the slots and that are not pending:
// those that Cancel ended and whose outcomes the index has not taken yet, and those at spiders. The
// owner copies some of the latter at a time, and goes on with its work in between.
func (d *Daemon) NotPending(ctx context.Context, o *docindex.Outcomes) error {
	var walk engine.InFlightWalk
	var part, ended docindex.Outcomes
	for first, more := true, true; more; first = false {
		var err error
		if more, err = answerOf(ctx, d, func(e *engine.Engine) bool {
			if first {
				d.outbox.addCancelled(&ended)
				addCancelled(&ended, &e.Out.Outcomes)
			}
			return e.WalkInFlight(&walk, &part)
		}); err != nil {
			return err
		}
		o.Append(&part)
	}
	for i := range ended.Len() {
		o.Add(ended.At(i))
	}
	return nil
}

// addCancelled adds those of some outcomes whose crawl is over.
func addCancelled(to, of *docindex.Outcomes) {
	for i := range of.Len() {
		if out := of.At(i); out.Kind == docindex.Stopped || out.Kind == docindex.Expired {
			to.Add(out)
		}
	}
}

// Forget ends documents that the index has forgotten, as Cancel does, without an outcome.
func (d *Daemon) Forget(o *docindex.Outcomes) {
	_ = d.ask(context.Background(), func(e *engine.Engine) { e.Forget(o) }) // a daemon that has stopped sends nothing
}
