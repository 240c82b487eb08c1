package urlserver

import (
	"context"
	"fmt"
	"time"

	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

// askIndex asks the doc index for candidates, one request at a time. It asks for none while documents wait to
// be returned, so these are never more than were held when the index began to refuse them.
func (d *Daemon) askIndex(ctx context.Context) {
	p := &engine.Prepared{Ports: d.cfg.Load().Resolver.AllowPorts} // the engine asks again only when it is through with it
	for {
		select {
		case a := <-d.asks:
			select {
			case <-d.returns.emptied():
			case <-ctx.Done():
				return
			}
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

// returnAll gives documents back to the embedded index. What it cannot take makes the daemon not ready.
func (d *Daemon) returnAll(ctx context.Context, o *docindex.Outcomes) error {
	err := d.parts.Store.Return(ctx, o)
	if err != nil {
		err = fmt.Errorf("documents could not be returned: %w", err)
	}
	d.noteIndex(err)
	return err
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
		d.log.Warn().Err(err).Msg("doc index failed; trying on")
	}
}
