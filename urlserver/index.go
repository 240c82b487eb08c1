package urlserver

import (
	"context"
	"fmt"
	"time"

	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

// askIndex requests candidates from the doc index, one request at a time. It waits while the daemon
// has documents to return to the index, so their number cannot exceed the number that the daemon
// held when the index began to fail.
func (d *Daemon) askIndex(ctx context.Context) {
	// reused: the engine asks again only after it has processed it
	p := &engine.Prepared{Ports: d.cfg.Load().Resolver.AllowPorts}
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

// returnAll returns documents to the embedded index. An error makes the daemon not ready.
func (d *Daemon) returnAll(ctx context.Context, o *docindex.Outcomes) error {
	err := d.parts.Store.Return(ctx, o)
	if err != nil {
		err = fmt.Errorf("documents could not be returned: %w", err)
	}
	d.noteIndex(err)
	return err
}

// pauseAll makes the embedded index keep the pauses and gaps of hosts.
func (d *Daemon) pauseAll(ctx context.Context, o *docindex.Outcomes) error {
	err := d.parts.Store.Pause(ctx, o)
	d.noteIndex(err)
	return err
}

// noteIndex records the result of a call to the index, and logs each change.
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
		d.log.Warn().Err(err).Msg("doc index failed; trying again")
	}
}
