package urlserver

import (
	"context"

	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

// Condemn ends documents of crawls that are over, wherever they are held, each with its outcome's kind, and answers how
// many will not be sent. Those at spiders go on, and are not sent again.
func (d *Daemon) Condemn(ctx context.Context, o *docindex.Outcomes) (ended int, err error) {
	err = d.ask(context.WithoutCancel(ctx), func(e *engine.Engine) { ended = e.Condemn(o) }) // o is ours until the owner is through
	return ended, err
}

// AtSpiders adds the documents that are at spiders now.
func (d *Daemon) AtSpiders(ctx context.Context, o *docindex.Outcomes) error {
	return d.ask(context.WithoutCancel(ctx), func(e *engine.Engine) { e.AtSpiders(o) })
}

// Forget ends documents that the index has forgotten, as Condemn does, without an outcome.
func (d *Daemon) Forget(o *docindex.Outcomes) {
	_ = d.ask(context.Background(), func(e *engine.Engine) { e.Forget(o) }) // a daemon that has stopped sends nothing
}
